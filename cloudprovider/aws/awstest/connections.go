package awstest

import (
	"context"
	"net"
	"net/http"
	"sync"
	"time"
)

// unseen is for how long, of real time, a server may take to notice a connection that was left.
const unseen = 10 * time.Second

// connections knows the connections that callers have left and the server has not: what was sent on them may still be done. A caller that gives
// up closes its connection; the server closes its end when it has done what it had read.
type connections struct {
	hold func() (release func())

	mu    sync.Mutex
	ended map[string]bool  // ends that only the server has closed, by the caller's address
	left  map[string]*held // ends that only the caller has closed
}

// held is what lets the time go on.
type held struct {
	release func()
	limit   *time.Timer
}

func newConnections(hold func() func()) *connections {
	return &connections{hold: hold, ended: map[string]bool{}, left: map[string]*held{}}
}

// dial connects a caller.
func (w *connections) dial(ctx context.Context, network, address string) (net.Conn, error) {
	conn, err := (&net.Dialer{}).DialContext(ctx, network, address)
	if err != nil {
		return nil, err
	}
	return &connection{Conn: conn, leave: sync.OnceFunc(func() { w.leave(conn.LocalAddr().String()) })}, nil
}

type connection struct {
	net.Conn
	leave func()
}

// Close tells first: between the two nobody may move the time.
func (c *connection) Close() error {
	c.leave()
	return c.Conn.Close()
}

func (w *connections) leave(caller string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.ended[caller] {
		delete(w.ended, caller)
		return
	}
	h := &held{release: sync.OnceFunc(w.hold())}
	h.limit = time.AfterFunc(unseen, h.release) // one that was reset before it was accepted may never be known to the server
	w.left[caller] = h
}

// state hears from the server what its connections do. A hijacked one is closed by its handler, after all was done.
func (w *connections) state(conn net.Conn, s http.ConnState) {
	if s != http.StateClosed && s != http.StateHijacked {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	caller := conn.RemoteAddr().String()
	if h, ok := w.left[caller]; ok {
		delete(w.left, caller)
		h.limit.Stop()
		h.release()
	} else {
		w.ended[caller] = true
	}
}

// open counts the connections that callers have left and the server has not.
func (w *connections) open() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.left)
}
