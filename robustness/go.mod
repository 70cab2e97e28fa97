module github.com/leasehold-go/leasehold/robustness

go 1.25.0

replace github.com/leasehold-go/leasehold => ../
