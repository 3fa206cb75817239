package api_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/joinery-sdk/joinery/cloudprovider"
	"github.com/joinery-sdk/joinery/cloudprovider/aws/api"
	"github.com/joinery-sdk/joinery/cloudprovider/aws/awstest"
)

func connect(t *testing.T) (*awstest.Cloud, *api.Clients) {
	t.Helper()
	awstest.Begin()
	cloud, err := awstest.New(awstest.Config{})
	require.NoError(t, err)
	clients, err := api.Connect(t.Context(), cloud.API())
	require.NoError(t, err)
	return cloud, clients
}

func subnets(ctx context.Context, clients *api.Clients) error {
	_, err := clients.EC2.DescribeSubnets(ctx, &ec2.DescribeSubnetsInput{})
	return err
}

func only(action string, faults ...awstest.Fault) func(awstest.Call) awstest.Fault {
	return func(c awstest.Call) awstest.Fault {
		if c.Action == action && c.N <= len(faults) {
			return faults[c.N-1]
		}
		return awstest.Fault{}
	}
}

func TestCallsAreRepeated(t *testing.T) {
	throttle := awstest.Fault{Code: "RequestLimitExceeded", Message: "slower"}
	for name, test := range map[string]struct {
		faults []awstest.Fault
		calls  int
		code   error
	}{
		"throttled twice":       {[]awstest.Fault{throttle, throttle}, 3, nil},
		"throttled for long":    {[]awstest.Fault{throttle, throttle, throttle, throttle, throttle}, 4, cloudprovider.ErrThrottled},
		"lost once":             {[]awstest.Fault{{Lost: true}}, 2, nil},
		"lost for long":         {[]awstest.Fault{{Lost: true}, {Dropped: true}, {Dropped: true}, {Dropped: true}}, 4, errors.ErrUnsupported},
		"lost and then refused": {[]awstest.Fault{{Lost: true}, {Code: "UnauthorizedOperation"}}, 2, errors.ErrUnsupported},
		"left alone":            {[]awstest.Fault{{Code: "RequestLimitExceeded", RetryAfter: "30"}}, 1, cloudprovider.ErrThrottled},
		"internal error once":   {[]awstest.Fault{{Code: "InternalError"}}, 2, nil},
		"refused":               {[]awstest.Fault{{Code: "InvalidParameterValue"}}, 1, cloudprovider.ErrInvalidSpec},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				cloud, clients := connect(t)
				before := time.Now()
				cloud.SetFault(only("DescribeSubnets", test.faults...))
				err := api.Outcome("find", "subnets", subnets(t.Context(), clients))
				switch {
				case test.code == nil:
					require.NoError(t, err)
				case errors.Is(test.code, errors.ErrUnsupported): // stands for unknown
					assert.True(t, cloudprovider.Advise(err).Unknown, err)
				default:
					require.ErrorIs(t, err, test.code)
				}
				assert.Equal(t, test.calls, cloud.Calls("EC2.DescribeSubnets"))
				assert.LessOrEqual(t, time.Since(before), 2*time.Second, "a provider does not retry for long")
			})
		})
	}
}

func TestOwnBucketsSpareTheAccount(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cloud, clients := connect(t)
		begun := time.Now()
		for range 300 {
			require.NoError(t, subnets(t.Context(), clients))
		}
		assert.Zero(t, cloud.Throttled())
		assert.InDelta(t, 10, time.Since(begun).Seconds(), 0.1, "100 at once, then 20 a second")

		// Where nothing refills, the caller is told.
		time.Sleep(time.Minute)
		config := cloud.API()
		config.Buckets = api.NewBuckets(func(string, string, bool) api.Limit { return api.Limit{Calls: api.Rate{Burst: 1, PerSecond: 0.1}} })
		clients, err := api.Connect(t.Context(), config)
		require.NoError(t, err)
		require.NoError(t, subnets(t.Context(), clients))
		err = api.Outcome("find", "subnets", subnets(t.Context(), clients))
		require.ErrorIs(t, err, cloudprovider.ErrThrottled)
		var detail *cloudprovider.Error
		require.ErrorAs(t, err, &detail)
		assert.Greater(t, detail.RetryAfter, 5*time.Second)
	})
}

func TestPublished(t *testing.T) {
	for _, test := range []struct {
		action   string
		filtered bool
		want     api.Limit
	}{
		{"DescribeInstances", true, api.Limit{Calls: api.Rate{Burst: 100, PerSecond: 20}}},
		{"DescribeInstances", false, api.Limit{Calls: api.Rate{Burst: 50, PerSecond: 10}}},
		{"CreateFleet", false, api.Limit{Calls: api.Rate{Burst: 50, PerSecond: 5}}},
		{"CreateTags", false, api.Limit{Calls: api.Rate{Burst: 100, PerSecond: 10}}},
		{"TerminateInstances", false, api.Limit{Calls: api.Rate{Burst: 100, PerSecond: 5}, Resources: api.Rate{Burst: 1000, PerSecond: 20}}},
	} {
		assert.Equal(t, test.want, api.Published(api.EC2, test.action, test.filtered), test.action)
	}
	assert.Zero(t, api.Published(api.SSM, "GetParameters", false))
}

func TestBucketsRefill(t *testing.T) {
	b := api.NewBuckets(nil)
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	take := func(n int) time.Duration { return b.Take(now, api.EC2, "TerminateInstances", false, n, 0) }
	require.Zero(t, take(900))
	assert.Equal(t, 20*time.Second, take(500), "400 of 500 are missing, 20 a second")
	now = now.Add(20 * time.Second)
	require.Zero(t, take(500))
	now = now.Add(time.Hour)
	require.Zero(t, take(5000), "more than it ever holds is a full bucket")
}

// What AWS says of credentials and user data must not reach an error or a log.
func TestNothingPrivateInErrors(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cloud, clients := connect(t)
		const own = "#!/bin/bash\nexport TOKEN_OF_MINE=hunter2hunter2\n"
		data := base64Of(own)
		for _, echo := range []string{
			"bad user data: " + own, "bad user data: " + data, "Encoded authorization failure message: " + strings.Repeat("Ab3_x", 40),
			"key " + awstest.AccessKeyID + " and " + awstest.SecretAccessKey, "secret=swordfish", "found export TOKEN_OF_MINE=hunter2hunter2 in it",
		} {
			cloud.SetFault(func(c awstest.Call) awstest.Fault {
				return awstest.Fault{Code: "InvalidParameterValue", Message: echo}
			})
			_, err := clients.EC2.CreateLaunchTemplate(t.Context(), &ec2.CreateLaunchTemplateInput{
				LaunchTemplateName: aws.String("name"), LaunchTemplateData: &types.RequestLaunchTemplateData{UserData: aws.String(data)},
			})
			err = api.Outcome("create", "node-1", err)
			require.ErrorIs(t, err, cloudprovider.ErrInvalidSpec)
			for _, private := range []string{"hunter2", data, awstest.AccessKeyID, awstest.SecretAccessKey, "Ab3_xAb3_x", "swordfish"} {
				assert.NotContains(t, err.Error(), private)
			}
			assert.Contains(t, err.Error(), "[redacted]")
		}
	})
}

func TestRedactKeepsWhatIsUseful(t *testing.T) {
	for _, text := range []string{
		"The instance ID 'i-0123456789abcdef0' does not exist", "arn:aws:iam::111122223333:instance-profile/nodes/us-east-1/harbour/general-nodes",
		"User: arn:aws:sts::111122223333:assumed-role/planner/session is not authorized to perform: ec2:CreateFleet",
	} {
		assert.Equal(t, text, api.Redact(text))
	}
}

func TestCauseAndCure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, test := range []struct {
			code, message string
			want          error
			cure          string
		}{
			{"UnauthorizedOperation", "You are not authorized to perform this operation.", cloudprovider.ErrUnauthorized, "allow ec2:DescribeSubnets in the caller's IAM policy"},
			{"UnauthorizedOperation", "User: x is not authorized to perform: ec2:CreateTags on resource: y because no permissions boundary allows it", cloudprovider.ErrUnauthorized, "allow ec2:CreateTags in the caller's permissions boundary"},
			{"UnauthorizedOperation", "with an explicit deny in a service control policy", cloudprovider.ErrUnauthorized, "service control policy"},
			{"AuthFailure.ServiceLinkedRoleCreationNotPermitted", "no", cloudprovider.ErrUnauthorized, "create-service-linked-role --aws-service-name spot.amazonaws.com"},
			{"InsufficientFreeAddressesInSubnet", "none", cloudprovider.ErrInsufficientCapacity, "larger subnet"},
			{"InvalidParameterValue", "User data is limited to 16384 bytes", cloudprovider.ErrInvalidSpec, "scripts into the image"},
			{"ExpiredToken", "x", cloudprovider.ErrUnauthorized, "renew"},
			{"VcpuLimitExceeded", "x", cloudprovider.ErrQuota, "quota of vCPUs"},
			{"InvalidParameterValue", "The KMS key is not authorized", cloudprovider.ErrInvalidSpec, "kms:CreateGrant"},
		} {
			cloud, clients := connect(t)
			cloud.SetFault(func(awstest.Call) awstest.Fault { return awstest.Fault{Code: test.code, Message: test.message} })
			err := subnets(t.Context(), clients)
			require.ErrorIs(t, err, test.want)
			assert.ErrorContains(t, err, test.cure)
			assert.Equal(t, test.code, api.Reason(err))
			codes := 0
			for _, code := range cloudprovider.Codes() {
				if errors.Is(err, code) {
					codes++
				}
			}
			assert.Equal(t, 1, codes)
		}
	})
}

func TestContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, clients := connect(t)
		done, cancel := context.WithCancel(t.Context())
		cancel()
		err := subnets(done, clients)
		require.ErrorIs(t, err, context.Canceled)
		assert.True(t, cloudprovider.Advise(err).Unknown)
	})
}

func TestConnectNeedsARegion(t *testing.T) {
	t.Setenv("AWS_REGION", "")
	t.Setenv("AWS_DEFAULT_REGION", "")
	t.Setenv("AWS_CONFIG_FILE", t.TempDir()+"/none")
	_, err := api.Connect(t.Context(), api.Config{})
	require.ErrorContains(t, err, "us-east-1")
}

func base64Of(text string) string {
	const digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
	var b strings.Builder
	for i := 0; i < len(text); i += 3 {
		chunk := []byte(text[i:min(i+3, len(text))])
		n := 0
		for j := range 3 {
			n <<= 8
			if j < len(chunk) {
				n |= int(chunk[j])
			}
		}
		for j := range 4 {
			if j > len(chunk) {
				b.WriteByte('=')
			} else {
				b.WriteByte(digits[n>>(18-6*j)&63])
			}
		}
	}
	return b.String()
}

func ExamplePublished() {
	l := api.Published(api.EC2, "TerminateInstances", false)
	fmt.Println(l.Calls.Burst, l.Calls.PerSecond, l.Resources.Burst, l.Resources.PerSecond)
	// Output: 100 5 1000 20
}

func ExampleBuckets_Take() {
	b := api.NewBuckets(func(string, string, bool) api.Limit { return api.Limit{Calls: api.Rate{Burst: 1, PerSecond: 2}} })
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	take := func() time.Duration { return b.Take(now, api.EC2, "CreateFleet", false, 0, time.Second) }
	fmt.Println(take(), take(), take())
	// Output: 0s 500ms 1s
}

func ExampleRedact() {
	fmt.Println(api.Redact("the key AKIAEXAMPLEEXAMPLE00 may not launch i-0123456789abcdef0"))
	// Output: the key [redacted] may not launch i-0123456789abcdef0
}

func ExampleFind() {
	a := api.Find(api.Entry, "VolumeLimitExceeded", "You have exceeded your maximum volume limit.", 0)
	fmt.Println(a.Err(), "of", a.Blame, "as in", a.Source)
	fmt.Println(api.Find(api.Call, "UnheardOf", "", 400).Err(), api.Find(api.Call, "UnheardOf", "", 500).Err())
	// Output:
	// quota exceeded of EBS storage as in https://docs.aws.amazon.com/AWSEC2/latest/APIReference/errors-overview.html
	// invalid spec <nil>
}

func ExampleAnswer_Describe() {
	a := api.Find(api.Call, "UnauthorizedOperation", "", 403)
	fmt.Println(a.Describe("You are not authorized.", "ec2:CreateFleet"))
	// Output: UnauthorizedOperation: You are not authorized.: allow ec2:CreateFleet in the caller's IAM policy
}

func ExampleConnect() {
	cloud, err := awstest.New(awstest.Config{})
	if err != nil {
		fmt.Println(err)
		return
	}
	ctx := context.Background()
	clients, err := api.Connect(ctx, cloud.API())
	if err != nil {
		fmt.Println(err)
		return
	}
	out, err := clients.EC2.DescribeSubnets(ctx, &ec2.DescribeSubnetsInput{})
	fmt.Println(len(out.Subnets), err)
	// Output: 6 <nil>
}

// keeper answers every request and keeps its body.
type keeper struct{ body io.ReadCloser }

func (k *keeper) RoundTrip(r *http.Request) (*http.Response, error) {
	k.body = r.Body
	if _, err := io.ReadAll(r.Body); err != nil {
		return nil, err
	}
	return &http.Response{StatusCode: http.StatusOK, Header: http.Header{}, Body: io.NopCloser(strings.NewReader("<DescribeRegionsResponse/>")), Request: r}, nil
}

// The HTTP client looks for more of a body that was sent; if it finds an error there, it closes the connection that the answer is read from.
func TestClosedBodiesAreAtTheirEnd(t *testing.T) {
	k := &keeper{}
	clients, err := api.Connect(t.Context(), api.Config{
		Region: "us-east-1", HTTPClient: &http.Client{Transport: k}, Credentials: credentials.NewStaticCredentialsProvider("AKIAEXAMPLE", "secret", ""),
	})
	require.NoError(t, err)
	_, err = clients.EC2.DescribeRegions(t.Context(), &ec2.DescribeRegionsInput{})
	require.NoError(t, err)
	n, err := io.Copy(io.Discard, k.body)
	require.NoError(t, err)
	assert.Zero(t, n)
}

// AWS says how long it wants to be left alone; otherwise repeats come after a time that is never quite the same.
func TestWaitsBetweenCalls(t *testing.T) {
	elapsed := map[time.Duration]bool{}
	for n := range 12 {
		synctest.Test(t, func(t *testing.T) {
			cloud, clients := connect(t)
			before := time.Now()
			fault := awstest.Fault{Code: "RequestLimitExceeded", Message: "slower"}
			if n == 0 {
				fault.RetryAfter = "1"
			}
			cloud.SetFault(only("DescribeSubnets", fault))
			require.NoError(t, subnets(t.Context(), clients))
			if n == 0 {
				assert.Equal(t, time.Second, time.Since(before))
			}
			elapsed[time.Since(before)] = true
		})
	}
	assert.Greater(t, len(elapsed), 6)
}
