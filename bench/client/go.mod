module hyperfleet.dev/bench/client

go 1.24
