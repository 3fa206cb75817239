# What a cluster needs for cloudprovider/aws: the controller's role with its policy (policy.json beside this file), the role of the machines, and the
# queue of interruptions. It knows no partition, region or account by name.
terraform {
  required_version = ">= 1.5"
  required_providers {
    aws = { source = "hashicorp/aws", version = ">= 5.40" }
  }
}

variable "cluster" {
  type        = string
  description = "The name of the EKS cluster; the queue has the same."
}

variable "namespace" {
  type        = string
  default     = "kube-system"
  description = "The namespace of the controller's service account."
}

variable "service_account" {
  type        = string
  default     = "joinery"
  description = "The controller's service account."
}

variable "node_type" {
  type        = string
  default     = "EC2_LINUX"
  description = "The operating system of the nodes; a role lets nodes of one kind join."
  validation {
    condition     = contains(["EC2_LINUX", "EC2_WINDOWS"], var.node_type)
    error_message = "The node type is EC2_LINUX or EC2_WINDOWS."
  }
}

data "aws_partition" "this" {}
data "aws_caller_identity" "this" {}

locals {
  arn    = "arn:${data.aws_partition.this.partition}"
  region = split(":", aws_sqs_queue.interruptions.arn)[3]
  events = {
    spot        = { source = ["aws.ec2"], detail-type = ["EC2 Spot Instance Interruption Warning"] }
    rebalance   = { source = ["aws.ec2"], detail-type = ["EC2 Instance Rebalance Recommendation"] }
    state       = { source = ["aws.ec2"], detail-type = ["EC2 Instance State-change Notification"] }
    reservation = { source = ["aws.ec2"], detail-type = ["EC2 Capacity Reservation Instance Interruption Warning"] }
    scheduled   = { source = ["aws.health"], detail-type = ["AWS Health Event"] }
  }
}

resource "aws_iam_role" "machines" {
  name = "${var.cluster}-machines"
  assume_role_policy = jsonencode({
    Version   = "2012-10-17"
    Statement = [{ Effect = "Allow", Principal = { Service = "ec2.${data.aws_partition.this.dns_suffix}" }, Action = "sts:AssumeRole" }]
  })
}

resource "aws_iam_role_policy_attachment" "machines" {
  for_each   = toset(["AmazonEKSWorkerNodePolicy", "AmazonEKS_CNI_Policy", "AmazonEC2ContainerRegistryPullOnly", "AmazonSSMManagedInstanceCore"])
  role       = aws_iam_role.machines.name
  policy_arn = "${local.arn}:iam::aws:policy/${each.key}"
}

# Machines may join the cluster.
resource "aws_eks_access_entry" "machines" {
  cluster_name  = var.cluster
  principal_arn = aws_iam_role.machines.arn
  type          = var.node_type
}

resource "aws_iam_role" "controller" {
  name = "${var.cluster}-joinery"
  assume_role_policy = jsonencode({
    Version   = "2012-10-17"
    Statement = [{
      Effect = "Allow", Principal = { Service = "pods.eks.amazonaws.com" }, Action = ["sts:AssumeRole", "sts:TagSession"]
      # Pods of this cluster alone.
      Condition = {
        StringEquals = { "aws:SourceAccount" = data.aws_caller_identity.this.account_id }
        ArnEquals    = { "aws:SourceArn" = "${local.arn}:eks:${local.region}:${data.aws_caller_identity.this.account_id}:cluster/${var.cluster}" }
      }
    }]
  })
}

resource "aws_eks_pod_identity_association" "controller" {
  cluster_name    = var.cluster
  namespace       = var.namespace
  service_account = var.service_account
  role_arn        = aws_iam_role.controller.arn
}

resource "aws_iam_policy" "controller" {
  name = "${var.cluster}-joinery"
  policy = templatefile("${path.module}/policy.json", {
    Partition = data.aws_partition.this.partition
    Region    = local.region
    Account   = data.aws_caller_identity.this.account_id
    Cluster   = var.cluster
    NodeRole  = aws_iam_role.machines.name
  })
}

resource "aws_iam_role_policy_attachment" "controller" {
  role       = aws_iam_role.controller.name
  policy_arn = aws_iam_policy.controller.arn
}

resource "aws_sqs_queue" "interruptions" {
  name                      = var.cluster
  message_retention_seconds = 300
  sqs_managed_sse_enabled   = true
}

resource "aws_sqs_queue_policy" "senders" {
  queue_url = aws_sqs_queue.interruptions.url
  policy = jsonencode({
    Version = "2012-10-17"
    Statement = [
      {
        Sid       = "EventsOfThisAccount"
        Effect    = "Allow"
        Principal = { Service = "events.amazonaws.com" }
        Action    = "sqs:SendMessage"
        Resource  = aws_sqs_queue.interruptions.arn
        Condition = { ArnLike = { "aws:SourceArn" = "${local.arn}:events:${local.region}:${data.aws_caller_identity.this.account_id}:rule/*" } }
      },
      {
        Sid       = "NothingInTheClear"
        Effect    = "Deny"
        Principal = "*"
        Action    = "sqs:*"
        Resource  = aws_sqs_queue.interruptions.arn
        Condition = { Bool = { "aws:SecureTransport" = false } }
      },
    ]
  })
}

resource "aws_cloudwatch_event_rule" "interruptions" {
  for_each      = local.events
  name          = "${var.cluster}-joinery-${each.key}"
  event_pattern = jsonencode(each.value)
}

resource "aws_cloudwatch_event_target" "interruptions" {
  for_each  = local.events
  rule      = aws_cloudwatch_event_rule.interruptions[each.key].name
  target_id = "queue"
  arn       = aws_sqs_queue.interruptions.arn
}

output "node_role" {
  value       = aws_iam_role.machines.name
  description = "The role of node classes."
}

output "queue" {
  value       = aws_sqs_queue.interruptions.name
  description = "The provider's option Queue."
}
