// Package page shows the cluster in a browser: nodes as boxes with their pods, which nodes are
// coming and going, and the cost over time. It is one embedded file and a stream of server-sent
// events.
package page

import (
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"html/template"
	"net/http"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/joinery-sdk/joinery/examples/operator/controller"
	"github.com/joinery-sdk/joinery/examples/pipeline/picture"
)

//go:embed index.html
var index string

const (
	beat    = time.Second // how often the picture is taken
	history = 600         // pictures whose cost is remembered
)

// server takes pictures and shows the last to every browser.
type server struct {
	operator *controller.Operator

	mu   sync.Mutex
	last *message
	cost []picture.Point
}

// Serve returns the runnables that serve the page of an operator at an address; none if the address
// is empty.
func Serve(address string, operator *controller.Operator) []manager.Runnable {
	if address == "" {
		return nil
	}
	s := &server{operator: operator}
	web := &http.Server{Addr: address, Handler: s.handler(index), ReadHeaderTimeout: 10 * time.Second}
	web.RegisterOnShutdown(func() { _ = web.Close() }) // streams do not end by themselves
	return []manager.Runnable{manager.RunnableFunc(s.watch), &manager.Server{Name: "page", Server: web, OnlyServeWhenLeader: true}}
}

func (s *server) handler(source string) *http.ServeMux {
	mux := http.NewServeMux()
	page := template.Must(template.New("index").Parse(source))
	mux.HandleFunc("GET /{$}", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		_ = page.Execute(w, picture.Style)
	})
	mux.HandleFunc("GET /events", s.stream)
	return mux
}

// watch takes a picture every second.
func (s *server) watch(ctx context.Context) error {
	wait.UntilWithContext(ctx, func(ctx context.Context) {
		if c, err := take(ctx, s.operator); err != nil {
			ctrl.Log.Info("page", "error", err.Error())
		} else {
			s.publish(c, time.Now())
		}
	}, beat)
	return nil
}

func (s *server) publish(c *cluster, now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	at := picture.Point{X: float64(now.Unix()), Y: c.price}
	if n := len(s.cost); n > 1 && s.cost[n-1].Y == at.Y && s.cost[n-2].Y == at.Y {
		s.cost[n-1] = at // a flat line needs two points
	} else {
		s.cost = append(s.cost, at)
	}
	s.cost = s.cost[max(0, len(s.cost)-history):]
	s.last = c.show(s.cost)
}

// stream sends the last picture, and then the changes of each new one.
func (s *server) stream(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("Cache-Control", "no-store")
	clock := time.NewTicker(beat)
	defer clock.Stop()
	var sent *message
	for {
		s.mu.Lock()
		now := s.last
		s.mu.Unlock()
		if now != nil && now != sent {
			text, err := json.Marshal(now.since(sent))
			if err == nil {
				_, err = fmt.Fprintf(w, "data: %s\n\n", text)
			}
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
