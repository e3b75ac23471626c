module line-plugin

go 1.19

require lehr.dev/plugin v0.0.0

replace lehr.dev/plugin => ./lehrplugin
