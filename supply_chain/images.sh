#!/bin/sh
# Builds the images: called by `make images`, which sets the variables in capitals below.
#   IMAGES REGISTRY TAG   what is built, and its names
#   BUILDER               docker, podman or buildah; empty: the first that runs
#   BASE                  the base by digest, NAME@sha256:…; empty: the Dockerfile's, whose digest is looked up
#   UNPINNED_BASE         `yes` takes a BASE without a digest as it is
#   BUILD_OPTIONS         options for the builder
#   SBOM_PYTHON, SBOM     the Python of .venv, and the folder for bills of materials
set -eu

fail() {
    echo "make images: $*" >&2
    exit 2
}

case "$BASE" in
'' | *@sha256:*) ;;
*) test "$UNPINNED_BASE" = yes || fail "BASE=$BASE has no digest, and its tag may be another image tomorrow;" \
    "write NAME@sha256:…, or UNPINNED_BASE=yes to take what the tag is now" ;;
esac

if test -z "$BUILDER"; then
    for one in docker podman buildah; do
        if "$one" info >/dev/null 2>&1; then
            BUILDER=$one
            break
        fi
    done
fi
test -n "$BUILDER" || fail "docker, podman and buildah are missing or do not run; start one, or name it with BUILDER="

# Prints the digest of an image in its registry, sha256:…; empty where it has none.
digest_of() {
    "$BUILDER" pull "$1" >/dev/null || return 1
    case "$BUILDER" in
    *buildah) "$BUILDER" inspect --type image --format '{{.FromImageDigest}}' "$1" ;;
    *) "$BUILDER" image inspect --format '{{index .RepoDigests 0}}' "$1" | sed 's/.*@//' ;;
    esac
}

# Prints the packages of an image's Debian, one a line.
debian_of() {
    format='${Package} ${Version} ${Architecture}\n'
    case "$BUILDER" in
    *buildah)
        container=$("$BUILDER" from --pull-never "$1")
        "$BUILDER" run --user 0 "$container" -- dpkg-query -W -f "$format"
        "$BUILDER" rm "$container" >/dev/null
        ;;
    *) "$BUILDER" run --rm --network none --entrypoint dpkg-query "$1" -W -f "$format" ;;
    esac
}

if test -z "$BASE"; then
    name=$(sed -n 's/^ARG BASE=//p' Dockerfile)
    digest=$(digest_of "$name") || fail "the digest of $name cannot be looked up; name a base that can be had with BASE=NAME@sha256:…"
    case "$digest" in
    sha256:*) BASE="$name@$digest" ;;
    *) fail "$BUILDER knows no digest of $name; name one with BASE=NAME@sha256:…" ;;
    esac
fi
echo "the base is $BASE"
set --
case "$BASE" in
*@sha256:*) set -- --label "org.opencontainers.image.base.digest=${BASE##*@}" ;;
esac

listed=$(mktemp -d)
trap 'rm -rf "$listed"' EXIT
options=
for image in $IMAGES; do
    reference=$REGISTRY/beckon-$image:$TAG
    echo "$BUILDER builds $reference"
    # shellcheck disable=SC2086 # options are several words
    "$BUILDER" build --target "$image" --tag "$reference" --build-arg "VERSION=$TAG" --build-arg "BASE=$BASE" \
        --label "org.opencontainers.image.base.name=${BASE%@*}" "$@" $BUILD_OPTIONS .
    debian_of "$reference" >"$listed/$image"
    options="$options --debian $image=$listed/$image"
done
# shellcheck disable=SC2086 # options are several words
exec "$SBOM_PYTHON" -m supply_chain.sbom "$SBOM" $options
