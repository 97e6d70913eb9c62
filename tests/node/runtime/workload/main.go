// workload is what runs in the tests' pods, and in their sandboxes: nothing, until it is told to end.
// With the argument "end" it ends at once, as an init container does.
package main

import (
	"os"
	"os/signal"
	"syscall"
)

func main() {
	if len(os.Args) > 1 && os.Args[1] == "end" {
		return
	}
	told := make(chan os.Signal, 1)
	signal.Notify(told, syscall.SIGTERM, syscall.SIGINT)
	<-told
}
