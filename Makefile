# make            ./jail, one static binary
# make test       vet, lint and all tests; as root also as an ordinary user
# make help       the other targets

PREFIX   ?= /usr/local
GO       ?= go
ROUNDS   ?= 200
N        ?= 100000
FUZZTIME ?= 20s

VERSION = $(shell git describe --tags --always --dirty 2>/dev/null || echo unknown)

# libseccomp and libc are linked in. netgo and osusergo keep the parts of libc out that load
# shared objects at run time, which a static binary can't.
LDFLAGS = -s -w -linkmode external -extldflags "-static" -X main.version=$(VERSION)
BUILD   = CGO_ENABLED=1 $(GO) build -trimpath -buildvcs=false -tags netgo,osusergo -ldflags '$(LDFLAGS)'

ARM64 = GOOS=linux GOARCH=arm64 CC=aarch64-linux-gnu-gcc \
	PKG_CONFIG_LIBDIR=/usr/lib/aarch64-linux-gnu/pkgconfig:/usr/share/pkgconfig

# A static executable names no interpreter and no library it needs.
STATIC = ! readelf -ldW $(1) | grep -E 'INTERP|NEEDED' || { echo "$(1) is not static" >&2; exit 1; }

.DEFAULT_GOAL := jail
.PHONY: jail prebuilt generated arm64 test lint fuzz oracle demo bench install clean help

jail: ## the binary (go build knows whether there is anything to do)
	@GO=$(GO) scripts/deps build
	$(BUILD) -o $@ .
	@$(call STATIC,$@)

arm64: ## ./jail-arm64, cross-built
	@GO=$(GO) scripts/deps build arm64
	$(ARM64) $(BUILD) -o jail-arm64 .
	@$(call STATIC,jail-arm64)

test: jail lint ## everything CI checks
	scripts/test

lint: .cache/bin/staticcheck ## go vet, staticcheck, gofumpt
	$(GO) vet ./...
	.cache/bin/staticcheck ./...
	@bad=$$(find . -name .cache -prune -o -name '*.go' -print | xargs .cache/bin/gofumpt -l) && \
		{ test -z "$$bad" || { echo "gofumpt -w:" $$bad >&2; exit 1; }; }

.cache/bin/staticcheck: tools/go.mod tools/go.sum
	@mkdir -p $(@D)
	$(GO) build -C tools -o ../$(@D)/ tool
	@touch $@

prebuilt: ## the filters that are embedded, after a change of the rules
	$(GO) test ./seccomp -run TestPrebuilt -update

generated: ## the manual page, completions and schema in packaging, after a change of help
	$(GO) test ./cli -run TestPackaged -update

oracle: ## N random operations under random rules: the plan against the kernel
	$(GO) test ./oracle -run TestOracle -count=1 -timeout 0 -v -seed 0 -ops $(N)

fuzz: ## each fuzz target for FUZZTIME
	scripts/fuzz $(FUZZTIME)

demo: jail ## what jail does, in a minute
	@scripts/deps demo
	sh examples/demo.sh

bench: jail ## start-up and throughput, against bare and other sandboxes
	$(GO) run ./bench -n $(ROUNDS)

install: ## into $(DESTDIR)$(PREFIX), with manual page and completions; under sudo what is built is taken as it is
	@test -x jail || $(MAKE) --no-print-directory jail
	install -D -m 0755 jail $(DESTDIR)$(PREFIX)/bin/jail
	install -D -m 0644 packaging/jail.1 $(DESTDIR)$(PREFIX)/share/man/man1/jail.1
	install -D -m 0644 packaging/jail.bash $(DESTDIR)$(PREFIX)/share/bash-completion/completions/jail
	install -D -m 0644 packaging/_jail $(DESTDIR)$(PREFIX)/share/zsh/site-functions/_jail
	install -D -m 0644 packaging/jail.fish $(DESTDIR)$(PREFIX)/share/fish/vendor_completions.d/jail.fish
	install -D -m 0644 packaging/jail.schema.json $(DESTDIR)$(PREFIX)/share/jail/jail.schema.json

clean:
	rm -rf jail jail-arm64 .cache

help:
	@sed -n 's/^\([a-z0-9]*\):.*## \(.*\)/make \1	\2/p' Makefile | expand -t 16
