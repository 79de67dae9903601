// What checks the links of the documentation.
module github.com/managed-upgrade/managed-upgrade-operator/hack/tools/links

go 1.26.0

require github.com/yuin/goldmark v1.7.13
