// Command grafana writes the dashboards: the files in dashboards/ that Grafana is provisioned with. What is shown is
// said in shop.go, operators.go, relay.go, streams.go and postgres.go; how it is laid out and drawn, in the rest.
package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
)

//go:generate go run .

func main() {
	if err := write("dashboards"); err != nil {
		fmt.Fprintln(os.Stderr, "grafana:", err)
		os.Exit(1)
	}
}

// dashboards are all there are.
func dashboards() []dashboard { return []dashboard{shop, operators, relay, streams, postgres} }

// write puts one file per dashboard into a folder.
func write(folder string) error {
	for _, d := range dashboards() {
		text, err := render(d)
		if err != nil {
			return fmt.Errorf("%s: %w", d.uid, err)
		}
		if err := os.WriteFile(filepath.Join(folder, d.uid+".json"), text, 0o644); err != nil { //nolint:gosec // Grafana reads it
			return err
		}
	}
	return nil
}

// render gives a dashboard as Grafana reads it.
func render(d dashboard) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	if err := e.Encode(d.grafana()); err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}
