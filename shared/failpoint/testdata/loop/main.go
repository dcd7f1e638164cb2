// Loop passes a failpoint ten times.
package main

import (
	"fmt"

	"github.com/feira-shop/feira/shared/failpoint"
)

func main() {
	for range 10 {
		failpoint.At("loop", "somebody")
		fmt.Println("passed")
	}
}
