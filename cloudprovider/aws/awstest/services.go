package awstest

import (
	"crypto/md5" //nolint:gosec // SQS checks messages by it
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

func (c *Cloud) getParameters(r request) (any, *apiError) {
	var in struct{ Names []string }
	if failure := r.decode(&in); failure != nil {
		return nil, failure
	}
	if len(in.Names) == 0 || len(in.Names) > 10 {
		return nil, &apiError{"ValidationException", "names must have length between 1 and 10"}
	}
	found, invalid := []map[string]any{}, []string{}
	for _, n := range in.Names {
		if v, ok := c.parameters[n]; ok {
			found = append(found, map[string]any{"Name": n, "Value": v, "Type": "String", "Version": 1})
		} else {
			invalid = append(invalid, n)
		}
	}
	return map[string]any{"Parameters": found, "InvalidParameters": invalid}, nil
}

func (c *Cloud) describeCluster(r request) (any, *apiError) {
	if r.name != c.config.Cluster {
		return nil, &apiError{"ResourceNotFoundException", "No cluster found for name: " + r.name + "."}
	}
	return map[string]any{"cluster": map[string]any{
		"name": r.name, "arn": c.clusterARN(), "version": c.config.Version, "status": "ACTIVE", "endpoint": "https://" + r.name + ".eks.example.com",
		"certificateAuthority":    map[string]string{"data": "Y2VydGlmaWNhdGU="},
		"kubernetesNetworkConfig": map[string]string{"serviceIpv4Cidr": "10.100.0.0/16", "ipFamily": "ipv4"},
	}}, nil
}

// managedResource returns ARC's description of the cluster once its traffic was shifted.
func (c *Cloud) managedResource(r request) (any, *apiError) {
	if r.name != c.clusterARN() || c.shifted == nil {
		return nil, &apiError{"ResourceNotFoundException", "The requested resource doesn't exist."}
	}
	weights := map[string]float64{}
	for zone, away := range c.shifted {
		weights[zone] = 1
		if away {
			weights[zone] = 0
		}
	}
	return map[string]any{"arn": r.name, "name": c.config.Cluster, "appliedWeights": weights, "zonalShifts": []any{}}, nil
}

// arn returns the beginning of ARNs of a service in a region.
func (c *Cloud) arn(service, region string) string {
	partition := "aws"
	if strings.HasPrefix(c.region.Name, "us-gov-") {
		partition = "aws-us-gov"
	} else if strings.HasPrefix(c.region.Name, "cn-") {
		partition = "aws-cn"
	}
	return "arn:" + partition + ":" + service + ":" + region + ":" + account
}

func (c *Cloud) clusterARN() string {
	return c.arn("eks", c.region.Name) + ":cluster/" + c.config.Cluster
}

type queue struct {
	url      string
	visible  time.Duration
	serial   int
	messages []*message
}

type message struct {
	id, body, handle string
	hidden           time.Time
	received         int
}

// queueName returns the last part of a queue's address.
func queueName(url string) string { return url[strings.LastIndex(url, "/")+1:] }

func (c *Cloud) queue(r request, into any, url func() string) (*queue, *apiError) {
	if failure := r.decode(into); failure != nil {
		return nil, failure
	}
	q, ok := c.queues[queueName(url())]
	if !ok {
		return nil, &apiError{"com.amazonaws.sqs#QueueDoesNotExist", "The specified queue does not exist."}
	}
	return q, nil
}

func (c *Cloud) getQueueURL(r request) (any, *apiError) {
	var in struct{ QueueName string }
	if _, failure := c.queue(r, &in, func() string { return in.QueueName }); failure != nil {
		return nil, failure
	}
	return map[string]string{"QueueUrl": "https://sqs." + c.region.Name + ".amazonaws.com/" + account + "/" + in.QueueName}, nil
}

func (c *Cloud) sendMessage(r request) (any, *apiError) {
	var in struct{ QueueUrl, MessageBody string } //nolint:revive // as the protocol spells it
	q, failure := c.queue(r, &in, func() string { return in.QueueUrl })
	if failure != nil {
		return nil, failure
	}
	return map[string]string{"MessageId": q.add(in.MessageBody), "MD5OfMessageBody": sum(in.MessageBody)}, nil
}

func (q *queue) add(body string) string {
	q.serial++
	m := &message{id: fmt.Sprintf("message-%d", q.serial), body: body}
	q.messages = append(q.messages, m)
	return m.id
}

func sum(text string) string {
	s := md5.Sum([]byte(text)) //nolint:gosec // see above
	return hex.EncodeToString(s[:])
}

func (c *Cloud) receiveMessage(r request) (any, *apiError) {
	var in struct {
		QueueUrl            string //nolint:revive // as the protocol spells it
		MaxNumberOfMessages int
		VisibilityTimeout   *int
	}
	q, failure := c.queue(r, &in, func() string { return in.QueueUrl })
	if failure != nil {
		return nil, failure
	}
	hide := q.visible
	if in.VisibilityTimeout != nil {
		hide = time.Duration(*in.VisibilityTimeout) * time.Second
	}
	out := []map[string]any{}
	for _, m := range q.messages {
		if len(out) == max(in.MaxNumberOfMessages, 1) {
			break
		}
		if c.now().Before(m.hidden) {
			continue
		}
		m.received++
		m.hidden, m.handle = c.now().Add(hide), m.id+"-"+strconv.Itoa(m.received)
		out = append(out, map[string]any{"MessageId": m.id, "ReceiptHandle": m.handle, "Body": m.body, "MD5OfBody": sum(m.body)})
	}
	return map[string]any{"Messages": out}, nil
}

func (c *Cloud) deleteMessages(r request) (any, *apiError) {
	var in struct {
		QueueUrl string                               //nolint:revive // as the protocol spells it
		Entries  []struct{ Id, ReceiptHandle string } //nolint:revive // as the protocol spells it
	}
	q, failure := c.queue(r, &in, func() string { return in.QueueUrl })
	if failure != nil {
		return nil, failure
	}
	if len(in.Entries) > 10 {
		return nil, &apiError{"AWS.SimpleQueueService.TooManyEntriesInBatchRequest", "Maximum number of entries per request are 10."}
	}
	done := []map[string]string{}
	for _, entry := range in.Entries {
		id := entry.ReceiptHandle[:max(strings.LastIndex(entry.ReceiptHandle, "-"), 0)]
		q.messages = slices.DeleteFunc(q.messages, func(m *message) bool { return m.id == id })
		done = append(done, map[string]string{"Id": entry.Id})
	}
	return map[string]any{"Successful": done, "Failed": []any{}}, nil
}

// Send puts a message into the cluster's queue.
func (c *Cloud) Send(body string) {
	defer c.lock()()
	c.queues[c.config.Cluster].add(body)
}

// Queued returns the number of messages that have not been deleted.
func (c *Cloud) Queued() int {
	defer c.lock()()
	return len(c.queues[c.config.Cluster].messages)
}

// Event returns a message in the format of EventBridge.
func (c *Cloud) Event(source, detailType string, detail map[string]any) string {
	defer c.lock()()
	c.serial++
	body, err := json.Marshal(map[string]any{
		"version": "0", "id": fmt.Sprintf("event-%d", c.serial), "source": source, "detail-type": detailType, "account": account,
		"time": c.now().UTC().Format(time.RFC3339), "region": c.region.Name, "resources": []string{}, "detail": detail,
	})
	if err != nil {
		return err.Error() // only for details that JSON cannot write
	}
	return string(body)
}

// InterruptSpot sends the warning that a spot instance will be interrupted to the cluster's queue.
func (c *Cloud) InterruptSpot(id string) {
	c.Send(c.Event("aws.ec2", "EC2 Spot Instance Interruption Warning", map[string]any{"instance-id": id, "instance-action": "terminate"}))
}
