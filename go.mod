module jail

go 1.26.0

require (
	github.com/BurntSushi/toml v1.6.0
	github.com/bmatcuk/doublestar/v4 v4.10.4
	github.com/google/go-cmp v0.7.0
	golang.org/x/sys v0.50.0
)

require (
	github.com/landlock-lsm/go-landlock v0.11.2
	github.com/moby/sys/mountinfo v0.7.3
	github.com/seccomp/libseccomp-golang v0.11.1
	golang.org/x/sync v0.23.0
)

require kernel.org/pub/linux/libs/security/libcap/psx v1.2.78 // indirect
