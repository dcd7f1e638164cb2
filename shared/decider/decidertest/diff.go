package decidertest

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/feira-shop/feira/shared/events"
)

// lines shows events as they would be published, one field a line.
func lines(evs []events.Event) []string {
	var all []string
	for _, e := range evs {
		data, err := json.MarshalIndent(e, "\t", "  ")
		if err != nil {
			data = []byte(err.Error())
		}
		all = append(all, strings.Split("\t"+e.EventType()+" "+string(data), "\n")...)
	}
	return all
}

func compact(e events.Event) string {
	data, err := json.Marshal(e)
	if err != nil {
		return fmt.Sprintf("%s (%v)", e.EventType(), err)
	}
	return e.EventType() + " " + string(data)
}

// diff marks what is only in a with - and what is only in b with +, by the longest common subsequence.
func diff(a, b []string) string {
	common := make([][]int, len(a)+1) // common[i][j]: lines that a[i:] and b[j:] share
	for i := range common {
		common[i] = make([]int, len(b)+1)
	}
	for i := len(a) - 1; i >= 0; i-- {
		for j := len(b) - 1; j >= 0; j-- {
			if a[i] == b[j] {
				common[i][j] = common[i+1][j+1] + 1
			} else {
				common[i][j] = max(common[i+1][j], common[i][j+1])
			}
		}
	}
	var out strings.Builder
	for i, j := 0, 0; i < len(a) || j < len(b); {
		switch {
		case i < len(a) && j < len(b) && a[i] == b[j]:
			out.WriteString("  " + a[i] + "\n")
			i, j = i+1, j+1
		case j == len(b) || i < len(a) && common[i+1][j] >= common[i][j+1]:
			out.WriteString("- " + a[i] + "\n")
			i++
		default:
			out.WriteString("+ " + b[j] + "\n")
			j++
		}
	}
	return out.String()
}
