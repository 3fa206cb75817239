package cluster

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/hex"
	"encoding/pem"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// Cluster is a Kubernetes that runs. Make one by [Start].
type Cluster struct {
	// Kubeconfig is the path of a file by which kubectl reaches the cluster as administrator,
	// Kubectl that of kubectl.
	Kubeconfig, Kubectl string
	// Config is the same for clients in this process, without a limit on their requests.
	Config *rest.Config

	bin, dir  string
	etcd      string
	port      int
	etcdProc  *process
	apiserver *process
	others    []*process
}

// startupTime is how long a part may take until it answers; the API server needs 4 seconds on two
// idle cores.
const startupTime = 90 * time.Second

// Start starts a cluster on free ports of loopback: the programs of the folder bin (see [Build]),
// with data, keys and logs in the folder dir, which must be new. It returns when the API server is
// ready; the scheduler and the others follow within seconds. What was started is stopped if that
// fails.
func Start(ctx context.Context, bin, dir string) (*Cluster, error) {
	c := &Cluster{bin: bin, dir: dir, Kubeconfig: filepath.Join(dir, "kubeconfig"), Kubectl: filepath.Join(bin, "kubectl")}
	if err := c.start(ctx); err != nil {
		c.Stop()
		return nil, err
	}
	return c, nil
}

func (c *Cluster) start(ctx context.Context) error {
	ports, err := freePorts(3)
	if err != nil {
		return err
	}
	token, err := c.writeKeys()
	if err != nil {
		return err
	}
	c.etcd, c.port = "http://127.0.0.1:"+strconv.Itoa(ports[0]), ports[2]
	peers := "http://127.0.0.1:" + strconv.Itoa(ports[1])
	c.etcdProc, err = c.run("etcd", "--data-dir="+filepath.Join(c.dir, "etcd"), "--unsafe-no-fsync", "--name=default",
		"--listen-client-urls="+c.etcd, "--advertise-client-urls="+c.etcd,
		"--listen-peer-urls="+peers, "--initial-advertise-peer-urls="+peers, "--initial-cluster=default="+peers,
		"--quota-backend-bytes=8589934592", "--auto-compaction-mode=revision", "--auto-compaction-retention=20000")
	if err != nil {
		return err
	}
	if err := c.StartAPIServer(ctx); err != nil {
		return err
	}
	if err := c.writeKubeconfig(token); err != nil {
		return err
	}
	if err := c.waitReady(ctx); err != nil {
		return err
	}
	return c.startOthers()
}

// kwokConfig is kwok's with two changes. It asks the API server's memory which pods a new node has:
// by default it reads all pods from etcd, page by page, for each node, which takes two seconds with
// 50,000 of them. And it renews a lease every five minutes, not every ten seconds: 5,000 nodes made
// 500 requests a second so, more than two cores serve beside everything else, and were taken for
// dead. A file of options leaves no defaults for the others.
const kwokConfig = `apiVersion: config.kwok.x-k8s.io/v1alpha1
kind: KwokConfiguration
options:
  enablePodsOnNodeSyncListPager: false
  podsOnNodeSyncParallelism: 1
  cidr: 10.0.0.0/24
  nodeLeaseDurationSeconds: 1200
  nodeLeaseParallelism: 4
  podPlayStageParallelism: 4
  nodePlayStageParallelism: 4
`

// startOthers starts what talks to the API server. Their own limits of requests are lifted: one
// machine has to do it all.
func (c *Cluster) startOthers() error {
	if err := os.WriteFile(c.file("kwok.yaml"), []byte(kwokConfig), 0o600); err != nil {
		return fmt.Errorf("cluster: %w", err)
	}
	limits := []string{"--kube-api-qps=1000", "--kube-api-burst=2000", "--leader-elect=false", "--kubeconfig=" + c.Kubeconfig}
	for _, p := range []struct {
		name string
		args []string
	}{
		{"kube-controller-manager", append([]string{
			"--secure-port=0", "--service-account-private-key-file=" + c.file("sa.key"), "--use-service-account-credentials=false",
			"--concurrent-deployment-syncs=10", "--concurrent-replicaset-syncs=20", "--concurrent-gc-syncs=20",
			"--node-monitor-grace-period=30m", // more than a lease of kwokConfig
		}, limits...)},
		{"kube-scheduler", append([]string{"--secure-port=0"}, limits...)},
		{"kwok", []string{"--kubeconfig=" + c.Kubeconfig, "--manage-all-nodes=true", "--config=" + filepath.Join(c.bin, "stages.yaml"), "--config=" + c.file("kwok.yaml")}},
	} {
		proc, err := c.run(p.name, p.args...)
		if err != nil {
			return err
		}
		c.others = append(c.others, proc)
	}
	return nil
}

// StartAPIServer starts the API server again after [Cluster.StopAPIServer], and returns when it is
// ready.
func (c *Cluster) StartAPIServer(ctx context.Context) error {
	proc, err := c.run("kube-apiserver", "--etcd-servers="+c.etcd, "--bind-address=127.0.0.1", "--secure-port="+strconv.Itoa(c.port),
		"--cert-dir="+c.dir, "--service-cluster-ip-range=10.0.0.0/24", "--service-account-issuer=https://kubernetes.default.svc",
		"--service-account-key-file="+c.file("sa.pub"), "--service-account-signing-key-file="+c.file("sa.key"),
		"--token-auth-file="+c.file("tokens.csv"), "--authorization-mode=RBAC", "--allow-privileged=true",
		"--disable-admission-plugins=ServiceAccount", "--endpoint-reconciler-type=none", "--advertise-address=127.0.0.1",
		"--max-requests-inflight=2000", "--max-mutating-requests-inflight=1000")
	if err != nil {
		return err
	}
	c.apiserver = proc
	if c.Config == nil { // at first its certificate is not there yet
		return c.waitFor(ctx, func() error { _, err := os.Stat(c.file("apiserver.crt")); return err })
	}
	return c.waitReady(ctx)
}

// StopAPIServer ends the API server and leaves everything else running.
func (c *Cluster) StopAPIServer() { c.apiserver.stop() }

// Stop ends everything, what depends on others first. It is safe to call it twice.
func (c *Cluster) Stop() {
	for _, p := range slices.Backward(c.others) {
		p.stop()
	}
	c.apiserver.stop()
	c.etcdProc.stop()
}

func (c *Cluster) file(name string) string { return filepath.Join(c.dir, name) }

func (c *Cluster) run(name string, args ...string) (*process, error) {
	return startProcess(filepath.Join(c.bin, name), c.file(name+".log"), args...)
}

// writeKeys writes the key of service accounts and an administrator's token.
func (c *Cluster) writeKeys() (token string, err error) {
	if err := os.MkdirAll(c.dir, 0o700); err != nil {
		return "", fmt.Errorf("cluster: %w", err)
	}
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		return "", fmt.Errorf("cluster: %w", err)
	}
	public, err := x509.MarshalPKIXPublicKey(&key.PublicKey)
	if err != nil {
		return "", fmt.Errorf("cluster: %w", err)
	}
	secret := make([]byte, 16)
	if _, err := rand.Read(secret); err != nil {
		return "", fmt.Errorf("cluster: %w", err)
	}
	token = hex.EncodeToString(secret)
	return token, errors.Join(
		os.WriteFile(c.file("sa.key"), pem.EncodeToMemory(&pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(key)}), 0o600),
		os.WriteFile(c.file("sa.pub"), pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: public}), 0o600),
		os.WriteFile(c.file("tokens.csv"), []byte(token+",admin,admin,system:masters\n"), 0o600))
}

// writeKubeconfig trusts the certificate that the API server has made for itself, and nothing else.
func (c *Cluster) writeKubeconfig(token string) error {
	authority, err := os.ReadFile(c.file("apiserver.crt"))
	if err != nil {
		return fmt.Errorf("cluster: %w", err)
	}
	config := clientcmdapi.NewConfig()
	config.Clusters["local"] = &clientcmdapi.Cluster{Server: fmt.Sprintf("https://127.0.0.1:%d", c.port), CertificateAuthorityData: authority}
	config.AuthInfos["admin"] = &clientcmdapi.AuthInfo{Token: token}
	config.Contexts["local"] = &clientcmdapi.Context{Cluster: "local", AuthInfo: "admin"}
	config.CurrentContext = "local"
	if err := clientcmd.WriteToFile(*config, c.Kubeconfig); err != nil {
		return fmt.Errorf("cluster: %w", err)
	}
	c.Config, err = clientcmd.BuildConfigFromFlags("", c.Kubeconfig)
	if err != nil {
		return fmt.Errorf("cluster: %w", err)
	}
	c.Config.QPS = -1 // the API server's own fairness is enough
	return nil
}

// waitReady waits until the API server says that it is ready.
func (c *Cluster) waitReady(ctx context.Context) error {
	client, err := rest.HTTPClientFor(c.Config)
	if err != nil {
		return fmt.Errorf("cluster: %w", err)
	}
	return c.waitFor(ctx, func() error {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, c.Config.Host+"/readyz", nil)
		if err != nil {
			return err
		}
		answer, err := client.Do(request)
		if err != nil {
			return err
		}
		defer answer.Body.Close()
		if answer.StatusCode != http.StatusOK {
			return fmt.Errorf("readyz says %s", answer.Status)
		}
		return nil
	})
}

// waitFor asks until there is no error, while the API server and etcd live.
func (c *Cluster) waitFor(ctx context.Context, ask func() error) error {
	ctx, cancel := context.WithTimeout(ctx, startupTime)
	defer cancel()
	for {
		err := ask()
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("cluster: the API server does not answer: %w (logs in %s)", errors.Join(err, ctx.Err()), c.dir)
		case <-c.apiserver.done:
			return fmt.Errorf("cluster: the API server ended:\n%s", Tail(c.file("kube-apiserver.log"), 15))
		case <-c.etcdProc.done:
			return fmt.Errorf("cluster: etcd ended:\n%s", Tail(c.file("etcd.log"), 15))
		case <-time.After(100 * time.Millisecond):
		}
	}
}

// Tail is the last lines of a log, or why it cannot be read.
func Tail(path string, n int) string {
	data, err := os.ReadFile(path)
	if err != nil {
		return err.Error()
	}
	lines := bytes.Split(bytes.TrimSpace(data), []byte("\n"))
	return string(bytes.Join(lines[max(0, len(lines)-n):], []byte("\n")))
}

// freePorts are ports that nobody listened at a moment ago.
func freePorts(n int) ([]int, error) {
	var ports []int
	for range n {
		l, err := net.Listen("tcp", "127.0.0.1:0") //nolint:noctx // it does not wait
		if err != nil {
			return nil, fmt.Errorf("cluster: %w", err)
		}
		defer l.Close()
		ports = append(ports, l.Addr().(*net.TCPAddr).Port)
	}
	return ports, nil
}
