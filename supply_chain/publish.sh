#!/bin/sh
# Publishes the images that `make images` built: called by the release workflow, in two steps.
#   publish.sh push ARCHITECTURE    pushes each image of this machine as REGISTRY/beckon-…:TAG-ARCHITECTURE
#   publish.sh index IMAGE          joins the pushed architectures under REGISTRY/beckon-IMAGE:TAG, prints its digest
#   IMAGES REGISTRY TAG             what is published, as for `make images`
#   BUILDER                         the program that has the images, with its options: docker, podman or buildah
#   BUILDAH                         buildah with its options, which joins
#   ARCHITECTURES                   what is joined: amd64 arm64
#   TLS_VERIFY                      false: the registry speaks plain HTTP
set -eu

fail() {
    echo "publish.sh: $*" >&2
    exit 2
}

: "${REGISTRY:?name the registry, such as registry.example/team}" "${TAG:?name the version, such as 1.2.3}"
BUILDAH=${BUILDAH:-buildah}
BUILDER=${BUILDER:-docker}
ARCHITECTURES=${ARCHITECTURES:-amd64 arm64}

# docker knows no such option: it takes plain HTTP of a registry on loopback as it is.
tls=
case "$BUILDER" in
docker*) ;;
*) tls="--tls-verify=${TLS_VERIFY:-true}" ;;
esac

push() {
    architecture=${1:?name the architecture: push amd64}
    for image in ${IMAGES:?name the images}; do
        reference=$REGISTRY/beckon-$image:$TAG
        # shellcheck disable=SC2086 # the builder and its options are several words
        $BUILDER tag "$reference" "$reference-$architecture"
        # shellcheck disable=SC2086
        $BUILDER push $tls "$reference-$architecture"
    done
}

index() {
    reference=$REGISTRY/beckon-${1:?name the image: index agent}:$TAG
    list=beckon-$1-index
    digest=$(mktemp)
    trap 'rm -f "$digest"' EXIT
    # shellcheck disable=SC2086
    $BUILDAH manifest rm "$list" >/dev/null 2>&1 || true
    # shellcheck disable=SC2086
    $BUILDAH manifest create "$list" >/dev/null
    for architecture in $ARCHITECTURES; do
        # shellcheck disable=SC2086
        $BUILDAH manifest add --tls-verify="${TLS_VERIFY:-true}" --arch "$architecture" "$list" \
            "docker://$reference-$architecture" >/dev/null ||
            fail "$reference-$architecture cannot be read; push it first: publish.sh push $architecture"
    done
    # shellcheck disable=SC2086
    $BUILDAH manifest push --quiet --all --tls-verify="${TLS_VERIFY:-true}" --digestfile "$digest" \
        "$list" "docker://$reference" >/dev/null
    cat "$digest"
    echo
}

case "${1:-}" in
push | index) "$@" ;;
*) fail "say what to do: push ARCHITECTURE, or index IMAGE" ;;
esac
