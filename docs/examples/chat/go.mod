module github.com/managed-upgrade/managed-upgrade-operator/docs/examples/chat

go 1.26.0
