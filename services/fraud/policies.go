package fraud

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// lookEvery is how often the files are looked at. They are read whole each time, so that it does not matter how a file
// is replaced.
const lookEvery = 2 * time.Second

// Files are where a deployment keeps what purchases are judged with. "": what is built in.
type Files struct{ Thresholds, Model string }

// Policies are the policy in force and the files it comes from. All methods may be called at any time.
type Policies struct {
	files   Files
	look    time.Duration
	current atomic.Pointer[loaded]
	reloads *prometheus.CounterVec
	valid   prometheus.Gauge
}

// loaded is a policy with the bytes it was made of.
type loaded struct {
	policy            *Policy
	thresholds, model []byte
}

// BuiltIn is the policy of a deployment without files.
func BuiltIn() *Policy {
	p, err := Open(Files{})
	if err != nil {
		return &Policy{} // never: a test reads what is compiled in
	}
	return p.Current()
}

// Open reads the files. Errors: [*ThresholdsError], [*ModelError], [*FeaturesError], or that a file cannot be read.
func Open(files Files) (*Policies, error) {
	p := &Policies{
		files: files, look: lookEvery,
		reloads: prometheus.NewCounterVec(prometheus.CounterOpts{
			Namespace: "feira", Subsystem: "fraud", Name: "policy_reloads_total", Help: "Changed thresholds or models that were met, by whether they are used.",
		}, []string{"outcome"}),
		valid: prometheus.NewGauge(prometheus.GaugeOpts{
			Namespace: "feira", Subsystem: "fraud", Name: "policy_files_valid", Help: "1 when the files of thresholds and model are what is judged with; 0 when they are broken, and what was read before is.",
		}),
	}
	for _, outcome := range []string{used, refused} {
		p.reloads.WithLabelValues(outcome)
	}
	next, err := p.read()
	if err != nil {
		return nil, err
	}
	p.current.Store(next)
	p.valid.Set(1)
	return p, nil
}

// Outcomes of a reload.
const (
	used    = "used"
	refused = "refused"
)

// Current is the policy in force.
func (p *Policies) Current() *Policy { return p.current.Load().policy }

// Reload reads the files again. What is broken changes nothing.
func (p *Policies) Reload() (changed bool, err error) {
	next, err := p.read()
	if err != nil {
		p.valid.Set(0)
		return false, err
	}
	p.valid.Set(1)
	before := p.current.Load()
	if bytes.Equal(next.thresholds, before.thresholds) && bytes.Equal(next.model, before.model) {
		return false, nil
	}
	p.current.Store(next)
	return true, nil
}

func (p *Policies) read() (*loaded, error) {
	l := &loaded{policy: &Policy{}}
	file, err := "thresholds.json, as built in", error(nil)
	if l.thresholds, err = content(p.files.Thresholds, builtInThresholds, &file); err != nil {
		return nil, fmt.Errorf("fraud: read the thresholds: %w", err)
	}
	if l.policy.Thresholds, l.policy.ThresholdsVersion, err = ParseThresholds(file, l.thresholds); err != nil {
		return nil, err
	}
	file = "model.json, as built in"
	if l.model, err = content(p.files.Model, builtInModel, &file); err != nil {
		return nil, fmt.Errorf("fraud: read the model: %w", err)
	}
	l.policy.Model, l.policy.ModelVersion, err = ParseModel(file, l.model)
	return l, err
}

func content(path string, builtIn []byte, file *string) ([]byte, error) {
	if path == "" {
		return builtIn, nil
	}
	*file = path
	return os.ReadFile(path) //nolint:gosec // the file that the deployment names
}

// watch has changed files take effect, within two seconds or at once on SIGHUP, until ctx ends. A broken file is
// told once for each way in which it is broken.
func (p *Policies) watch(ctx context.Context, log *slog.Logger) error {
	hangup := make(chan os.Signal, 1)
	signal.Notify(hangup, syscall.SIGHUP)
	defer signal.Stop(hangup)
	p.tell(log)
	tick := time.NewTicker(p.look)
	defer tick.Stop()
	for told := ""; ; {
		asked := false
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		case <-hangup:
			asked = true
		}
		changed, err := p.Reload()
		switch {
		case err != nil && (asked || err.Error() != told):
			told = err.Error()
			p.reloads.WithLabelValues(refused).Inc()
			log.Error("the policy stays as it was", "error", err, "thresholds", p.Current().ThresholdsVersion, "model", p.Current().ModelVersion)
		case err == nil && (changed || asked):
			told = ""
			p.reloads.WithLabelValues(used).Inc()
			p.tell(log)
		case err == nil:
			told = ""
		}
	}
}

// tell logs what is judged with from now on, whole, so that old verdicts can be explained by their versions.
func (p *Policies) tell(log *slog.Logger) {
	now := p.Current()
	log.Info("purchases are judged with", "thresholds", now.ThresholdsVersion, "model", now.ModelVersion, "content", now.Thresholds, "trained", now.Model.Training)
}
