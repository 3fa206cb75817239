// Package page is a picture of the cluster in a browser: nodes as boxes with their pods in them, what is coming and what is
// going, and the cost over time. It is one embedded file and a stream of server-sent events.
package page

import (
	"bytes"
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/joinery-sdk/joinery/examples/operator/controller"
)

//go:embed index.html
var index []byte

const (
	beat    = time.Second // how often the picture is taken
	history = 600         // pictures whose cost is remembered
)

// server takes pictures and shows the last to every browser.
type server struct {
	operator *controller.Operator

	mu   sync.Mutex
	last []byte
	cost []point
}

// Serve is what runs to serve the page of an operator at an address; nothing if that is empty.
func Serve(address string, operator *controller.Operator) []manager.Runnable {
	if address == "" {
		return nil
	}
	s := &server{operator: operator}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /{$}", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		_, _ = w.Write(index)
	})
	mux.HandleFunc("GET /events", s.stream)
	web := &http.Server{Addr: address, Handler: mux, ReadHeaderTimeout: 10 * time.Second}
	return []manager.Runnable{manager.RunnableFunc(s.watch), manager.RunnableFunc(func(ctx context.Context) error {
		go func() {
			<-ctx.Done()
			_ = web.Close() // streams never end by themselves
		}()
		if err := web.ListenAndServe(); !errors.Is(err, http.ErrServerClosed) {
			return fmt.Errorf("page: %w", err)
		}
		return nil
	})}
}

// watch takes a picture every beat.
func (s *server) watch(ctx context.Context) error {
	clock := time.NewTicker(beat)
	defer clock.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case now := <-clock.C:
			p, err := take(ctx, s.operator)
			if err == nil {
				err = s.publish(p, now)
			}
			if err != nil {
				ctrl.Log.Info("page", "error", err.Error())
			}
		}
	}
}

func (s *server) publish(p *picture, now time.Time) (err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if n := len(s.cost); n > 1 && s.cost[n-1].Dollars == p.Price && s.cost[n-2].Dollars == p.Price {
		s.cost[n-1].At = now.Unix() // a flat line needs two points
	} else {
		s.cost = append(s.cost, point{now.Unix(), p.Price})
	}
	s.cost = s.cost[max(0, len(s.cost)-history):]
	p.Cost = s.cost
	s.last, err = json.Marshal(p)
	return err
}

// stream sends the last picture, and every other in which something has changed.
func (s *server) stream(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("Cache-Control", "no-store")
	clock := time.NewTicker(beat)
	defer clock.Stop()
	var sent []byte
	for {
		s.mu.Lock()
		now := s.last
		s.mu.Unlock()
		if !bytes.Equal(now, sent) {
			_, err := fmt.Fprintf(w, "data: %s\n\n", now)
			if sent = now; errors.Join(err, http.NewResponseController(w).Flush()) != nil {
				return
			}
		}
		select {
		case <-r.Context().Done():
			return
		case <-clock.C:
		}
	}
}
