module lehr.dev/plugin

go 1.19
