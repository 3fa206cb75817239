package page

import (
	"context"
	"fmt"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/joinery-sdk/joinery/examples/pipeline/picture"
)

// probe runs in the page: it tells the test what a person would see. The browser looks when all is loaded, and the image is loaded
// once there is something to see.
const probe = `<img src="late" alt="" style="display: none"><script>
onerror = m => { document.body.dataset.errors = (document.body.dataset.errors || "") + m + ";"; };
setInterval(() => {
  const cut = [...document.querySelectorAll("svg text")].filter(e => {
    const a = e.getBoundingClientRect(), b = e.closest("svg").getBoundingClientRect(); return a.left < b.left - 1 || a.right > b.right + 1; });
  const wide = document.documentElement.scrollWidth > innerWidth;
  const nodes = document.querySelectorAll(".node").length;
  document.body.dataset.seen = nodes + " nodes, " + cut.length + " cut, wide " + wide;
  if (nodes > 0) fetch("seen");
}, 100);
</script>`

// a cluster with n nodes: some coming, some going, most at work.
func example(n int) *cluster {
	c := &cluster{waiting: slices.Repeat([]picture.Pod{{App: "batch"}}, n/3)}
	defer func() { c.pods += len(c.waiting) }()
	for i := range n {
		x := picture.Node{
			Name: fmt.Sprintf("default-%05d", i), Pool: "default", Type: []string{"m6a.2xlarge", "c7gn.metal", "u7i-12tb.224xlarge"}[i%3],
			Where: "us-east-1a · " + []string{"spot", "on-demand"}[i%2], Price: fmt.Sprintf("$0.%d00/h", i%9+1), CPU: 8000, Memory: 32 << 30,
		}
		switch i % 10 {
		case 3:
			x.State = picture.Coming
		case 7:
			x.State = picture.Going
		}
		for k := range i % 12 {
			for range k%3 + 1 {
				c.pods++
				x.Pods = append(x.Pods, picture.Pod{App: fmt.Sprintf("app-%d", (i+k)%17), CPU: 250, Memory: 1 << 30})
			}
		}
		c.price += 0.1 * float64(i%9+1)
		c.nodes = append(c.nodes, x)
	}
	return c
}

// Only what has changed is sent again.
func TestSince(t *testing.T) {
	before, after := example(3), example(4)
	after.nodes[1].State = picture.Going
	got := after.show(nil).since(before.show(nil))
	require.Equal(t, []string{"default-00000", "default-00001", "default-00002", "default-00003"}, got.Names)
	require.Equal(t, []string{"default-00001", "default-00003"}, slices.Sorted(maps.Keys(got.Drawn)))
	require.Len(t, after.show(nil).since(nil).Drawn, 4)
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
					c := example(n)
					c.price += float64(i % 7)
					s.publish(c, time.Unix(int64(1000+i), 0))
				}
				mux := s.handler(strings.Replace(index, "<header>", probe+"<header>", 1))
				seen := make(chan struct{}, 1)
				mux.HandleFunc("GET /seen", func(http.ResponseWriter, *http.Request) {
					select {
					case seen <- struct{}{}:
					default:
					}
				})
				mux.HandleFunc("GET /late", func(http.ResponseWriter, *http.Request) {
					select {
					case <-seen:
					case <-time.After(30 * time.Second):
					}
				})
				web := httptest.NewServer(mux)
				defer web.Close()
				defer web.CloseClientConnections()
				base := []string{"--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--hide-scrollbars", "--window-size=" + screen.size, screen.flag, "--user-data-dir=" + t.TempDir()}
				want := fmt.Sprintf("%d nodes, 0 cut, wide false", n)
				dom := look(t, browser, append(base, "--dump-dom", web.URL))
				told := regexp.MustCompile(`data-seen="([^"]*)"`).FindSubmatch(dom)
				require.NotNil(t, told, "the page says nothing")
				require.Equal(t, want, string(told[1]))
				require.NotContains(t, string(dom), "data-errors")
				if dir := os.Getenv("PAGE_SHOTS"); dir != "" {
					select {
					case <-seen: // of the first browser
					default:
					}
					look(t, browser, append(base, "--screenshot="+filepath.Join(dir, fmt.Sprintf("%d-%s.png", n, screen.name)), web.URL))
				}
			})
		}
	}
}

// An open page does not keep the operator from ending.
func TestStopsWithAnOpenStream(t *testing.T) {
	free, err := net.Listen("tcp", "127.0.0.1:0") //nolint:noctx // to know a free port
	require.NoError(t, err)
	require.NoError(t, free.Close())
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- Serve(free.Addr().String(), nil)[1].Start(ctx) }()
	var stream net.Conn
	require.Eventually(t, func() bool {
		stream, err = net.Dial("tcp", free.Addr().String()) //nolint:noctx // it ends with the server
		return err == nil
	}, 10*time.Second, 10*time.Millisecond)
	defer stream.Close()
	_, err = stream.Write([]byte("GET /events HTTP/1.1\r\nHost: here\r\n\r\n"))
	require.NoError(t, err)
	time.Sleep(200 * time.Millisecond) // nothing is sent before there is a picture
	cancel()
	select {
	case err := <-ended:
		require.NoError(t, err)
	case <-time.After(10 * time.Second):
		t.Fatal("it waits for the stream")
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
