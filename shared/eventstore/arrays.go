package eventstore

import (
	"fmt"
	"strings"
	"time"
)

// arrays are requests as the composite type es_appends takes them; see the migration for what each means.
type arrays struct {
	stream         []string
	expected, next []int64
	shape          []int32
	state, id      []string

	attemptReq []int32
	attemptJob []int64
	attemptAt  []time.Time

	jobReq                     []int32
	jobKind, jobArgs, jobQueue []string
	jobMax                     []int32
	jobAt                      []*time.Time

	eventReq             []int32
	eventStream          []string
	eventVersion         []int64
	eventType, eventKey  []string
	eventData, eventMeta []string
}

// columns are the SQL types of [arrays.args], in order.
var columns = []string{
	"text[]", "bigint[]", "bigint[]", "int[]", "text[]", "text[]",
	"int[]", "bigint[]", "timestamptz[]",
	"int[]", "text[]", "text[]", "text[]", "int[]", "timestamptz[]",
	"int[]", "text[]", "bigint[]", "text[]", "text[]", "text[]", "text[]",
}

func (a *arrays) args() []any {
	return []any{
		a.stream, a.expected, a.next, a.shape, a.state, a.id,
		a.attemptReq, a.attemptJob, a.attemptAt,
		a.jobReq, a.jobKind, a.jobArgs, a.jobQueue, a.jobMax, a.jobAt,
		a.eventReq, a.eventStream, a.eventVersion, a.eventType, a.eventKey, a.eventData, a.eventMeta,
	}
}

// add appends one request.
func (a *arrays) add(r *Append) {
	a.stream = append(a.stream, r.Stream)
	a.expected = append(a.expected, r.Expected)
	a.next = append(a.next, r.next())
	a.shape = append(a.shape, int32(r.Shape))
	a.state = append(a.state, string(r.State))
	a.id = append(a.id, r.id())
	req := int32(len(a.stream))
	if r.Attempt != nil {
		a.attemptReq = append(a.attemptReq, req)
		a.attemptJob = append(a.attemptJob, r.Attempt.JobID)
		a.attemptAt = append(a.attemptAt, r.Attempt.AttemptedAt)
	}
	for i := range r.Jobs {
		a.addJob(req, &r.Jobs[i])
	}
	for i := range r.Events {
		e := &r.Events[i]
		a.eventReq = append(a.eventReq, req)
		a.eventStream = append(a.eventStream, r.Stream)
		a.eventVersion = append(a.eventVersion, r.Expected+int64(i)+1)
		a.eventType = append(a.eventType, e.Type)
		a.eventKey = append(a.eventKey, e.Key)
		a.eventData = append(a.eventData, string(e.Data))
		a.eventMeta = append(a.eventMeta, string(e.Meta))
	}
}

func (a *arrays) addJob(req int32, j *Job) {
	var at *time.Time
	if !j.ScheduledAt.IsZero() {
		at = &j.ScheduledAt
	}
	a.jobReq = append(a.jobReq, req)
	a.jobKind = append(a.jobKind, j.Kind)
	a.jobArgs = append(a.jobArgs, j.args())
	a.jobQueue = append(a.jobQueue, j.Queue)
	a.jobMax = append(a.jobMax, int32(j.MaxAttempts))
	a.jobAt = append(a.jobAt, at)
}

// callSQL is "select * from call($1, …, $n, row(…)::es_appends, tail)", where n is the number of leading arguments.
func callSQL(call string, leading int, tail string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "select * from %s(", call)
	for i := range leading {
		fmt.Fprintf(&b, "$%d, ", i+1)
	}
	b.WriteString("row(")
	for i, typ := range columns {
		if i > 0 {
			b.WriteString(", ")
		}
		fmt.Fprintf(&b, "$%d::%s", leading+i+1, typ)
	}
	fmt.Fprintf(&b, ")::es_appends%s)", tail)
	return b.String()
}
