# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=bash
#
# common.sh: what the scripts beside it share; they source it, in the root of the sources, with O and version set.

# The time of the last commit, or of the changelog where this is no git repository.
seconds() {
	echo "${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct 2>/dev/null || stat -c %Y CHANGELOG.md)}"
}

# A git description is no Debian version yet: 0.1.0-12-gabc-dirty is 0.1.0+12+gabc+dirty. Where no tag is known it has
# no number that grows, and the time of the commit is one: 0.1.0-gabc is 0.1.0+git20261127.134500+gabc, which is later
# than all of 0.1.0+gabc, as it was before. The last number is that of the packaging.
debian_version() {
	local version=$1
	if [[ $version =~ ^([0-9.]+)-(g[0-9a-f]+.*)$ ]]; then
		version=${BASH_REMATCH[1]}+git$(date -u -d "@$(seconds)" +%Y%m%d.%H%M%S)+${BASH_REMATCH[2]}
	fi
	echo "${version//-/+}-1"
}

# There is no address to write to; who makes packages for others sets the variables, as for Debian's own tools.
maintainer() {
	echo "${DEBFULLNAME:-The ttmon developers} <${DEBEMAIL:-ttmon@ttmon.invalid}>"
}

# documents ROOT PACKAGE: the licence, the changelog of the packages, and what changed for users.
documents() {
	local doc=$1/usr/share/doc/$2
	mkdir -p "$doc"
	install -m 0644 packaging/debian/copyright "$doc/copyright"
	{
		printf 'ttmon (%s) unstable; urgency=medium\n\n' "$version"
		printf '  * What is new for users is in changelog.gz.\n\n'
		printf ' -- %s  %s\n' "$(maintainer)" "$(LC_ALL=C date -u -R -d "@$(seconds)")"
	} | gzip -9n >"$doc/changelog.Debian.gz"
	gzip -9nc CHANGELOG.md >"$doc/changelog.gz"
	chmod 0644 "$doc/copyright" "$doc/changelog.Debian.gz" "$doc/changelog.gz"
}

# build ROOT CONTROL DEB [SED ARGUMENT...]: the control file from its template, the sums, the package.
build() {
	local root=$1 control=$2 deb=$3 size
	shift 3
	find "$root" -mindepth 1 -type d -empty -not -name DEBIAN -delete
	size=$(du -ks --exclude=DEBIAN "$root" | cut -f 1)
	mkdir -p "$root/DEBIAN"
	sed -e "s/@VERSION@/$version/; s/@SIZE@/$size/; s/@MAINTAINER@/$(maintainer)/" "$@" "$control" \
		>"$root/DEBIAN/control"
	(cd "$root" && find . -type f -not -path './DEBIAN/*' -printf '%P\0' | sort -z | xargs -0 md5sum) \
		>"$root/DEBIAN/md5sums"
	chmod 0644 "$root/DEBIAN/control" "$root/DEBIAN/md5sums"
	dpkg-deb --root-owner-group -Zxz --build "$root" "$deb" >&2
}
