package page

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// probe runs in the page: it tells the test what a person would see. The browser looks when all is loaded, and the image is loaded
// late.
const probe = `<img src="late" alt="" style="display: none"><script>
onerror = m => { document.body.dataset.errors = (document.body.dataset.errors || "") + m + ";"; };
setInterval(() => {
  const cut = [...document.querySelectorAll("b, span, .dim, .state")].filter(e => e.scrollWidth > e.clientWidth + 1 && getComputedStyle(e).display !== "inline");
  const wide = document.documentElement.scrollWidth > innerWidth;
  document.body.dataset.seen = document.querySelectorAll(".node").length + " nodes, " + cut.length + " cut, wide " + wide;
}, 100);
</script>`

// a cluster with n nodes: some coming, some going, most at work.
func example(n int) *picture {
	p := &picture{Pending: map[string]int{"waiting": n / 3}, Nodes: []box{}}
	for i := range n {
		b := box{
			Name: fmt.Sprintf("default-%05d", i), Pool: "default", Type: []string{"m6a.2xlarge", "c7gn.metal", "u7i-12tb.224xlarge"}[i%3], Zone: "us-east-1a",
			Kind: []string{"spot", "on-demand"}[i%2], State: "ready", Price: 0.1 * float64(i%9+1), CPU: i * 7 % 101, Mem: i * 13 % 101, Pods: map[string]int{},
		}
		switch i % 10 {
		case 3:
			b.State = "coming"
		case 7:
			b.State = "going"
		}
		for k := range i % 12 {
			b.Pods[fmt.Sprintf("app-%d", (i+k)%17)] = k%3 + 1
		}
		p.Price += b.Price
		p.Nodes = append(p.Nodes, b)
	}
	return p
}

// The page in a browser, at 3, 30 and 300 nodes, on a desk and on a phone: all nodes are there, nothing is cut off, nothing is wider
// than the screen, and no script fails. PAGE_SHOTS names a folder for pictures to look at.
func TestInABrowser(t *testing.T) {
	browser := ""
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome"} {
		if path, err := exec.LookPath(name); err == nil {
			browser = path
		}
	}
	if browser == "" {
		t.Skip("there is no Chromium")
	}
	for _, n := range []int{3, 30, 300} {
		for _, screen := range []struct{ name, size, flag string }{
			{"desk", "1400,900", "--blink-settings=preferredColorScheme=1"}, {"phone", "500,900", "--blink-settings=preferredColorScheme=0"},
		} {
			t.Run(fmt.Sprintf("%d nodes, %s", n, screen.name), func(t *testing.T) {
				s := &server{}
				for i := range 40 { // a history of prices
					p := example(n)
					p.Price += float64(i % 7)
					require.NoError(t, s.publish(p, time.Unix(int64(1000+i), 0)))
				}
				mux := http.NewServeMux()
				mux.HandleFunc("GET /events", s.stream)
				mux.HandleFunc("GET /late", func(http.ResponseWriter, *http.Request) { time.Sleep(3 * time.Second) })
				mux.HandleFunc("GET /{$}", func(w http.ResponseWriter, _ *http.Request) {
					_, _ = w.Write(bytes.Replace(index, []byte("<header>"), []byte(probe+"<header>"), 1))
				})
				web := httptest.NewServer(mux)
				defer web.Close()
				defer web.CloseClientConnections()
				base := []string{"--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--hide-scrollbars", "--window-size=" + screen.size, screen.flag, "--user-data-dir=" + t.TempDir()}
				want := fmt.Sprintf("%d nodes, 0 cut, wide false", n)
				dom := look(t, browser, append(base, "--dump-dom", web.URL))
				seen := regexp.MustCompile(`data-seen="([^"]*)"`).FindSubmatch(dom)
				require.NotNil(t, seen, "the page says nothing")
				require.Equal(t, want, string(seen[1]))
				require.NotContains(t, string(dom), "data-errors")
				if dir := os.Getenv("PAGE_SHOTS"); dir != "" {
					look(t, browser, append(base, "--screenshot="+filepath.Join(dir, fmt.Sprintf("%d-%s.png", n, screen.name)), web.URL))
				}
			})
		}
	}
}

func look(t *testing.T, browser string, args []string) []byte {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	out, err := exec.CommandContext(ctx, browser, args...).Output()
	require.NoError(t, err)
	return out
}
