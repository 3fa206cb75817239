package cluster

import (
	"fmt"
	"os"
	"os/exec"
	"syscall"
	"time"
)

// process is a program that runs, with its output in a file. A nil process has ended.
type process struct {
	command *exec.Cmd
	done    chan struct{} // closed when it has ended
}

// startProcess starts a program in a group of its own, so that Ctrl-C reaches this process only,
// which then stops things in order. The log is appended to.
func startProcess(path, log string, args ...string) (*process, error) {
	out, err := os.OpenFile(log, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return nil, fmt.Errorf("cluster: %w", err)
	}
	defer out.Close()
	p := &process{command: exec.Command(path, args...), done: make(chan struct{})} //nolint:noctx // it outlives the call
	p.command.Stdout, p.command.Stderr = out, out
	p.command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := p.command.Start(); err != nil {
		return nil, fmt.Errorf("cluster: %w", err)
	}
	go func() {
		_ = p.command.Wait()
		close(p.done)
	}()
	return p, nil
}

// stop asks the program to end, kills it if it does not within a few seconds, and waits for its
// end.
func (p *process) stop() {
	if p == nil {
		return
	}
	_ = p.command.Process.Signal(syscall.SIGTERM)
	select {
	case <-p.done:
	case <-time.After(3 * time.Second):
		_ = p.command.Process.Kill()
		<-p.done
	}
}
