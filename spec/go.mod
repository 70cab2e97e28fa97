module github.com/leasehold-go/leasehold/spec

go 1.25.0

require github.com/leasehold-go/leasehold/interop v0.0.0

require golang.org/x/sys v0.47.0 // indirect

replace (
	github.com/leasehold-go/leasehold => ../
	github.com/leasehold-go/leasehold/interop => ../interop
)
