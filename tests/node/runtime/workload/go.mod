module workload

go 1.24
