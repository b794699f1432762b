# What docker-compose.yml and the chart run beside our own programs, from Debian's packages: PostgreSQL, and everything else.
ARG DEBIAN=localhost/hyperfleet-test-debian
FROM ${DEBIAN} AS postgres
# No package starts its service. postgres has the number that it has in PostgreSQL's own image.
RUN groupadd --gid 999 postgres && useradd --uid 999 --gid 999 --home-dir /var/lib/postgresql postgres && \
    printf '#!/bin/sh\nexit 101\n' >/usr/sbin/policy-rc.d && chmod +x /usr/sbin/policy-rc.d && apt-get update -qq && \
    DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends libnss-wrapper postgresql && \
    rm -rf /var/cache/apt /var/lib/postgresql && mkdir -p /var/lib/postgresql/data && \
    ln -s /usr/lib/postgresql/*/bin/* /usr/local/bin/
COPY postgres-entrypoint /usr/local/bin/docker-entrypoint.sh
# As in PostgreSQL's own image: it ends without waiting for its clients.
STOPSIGNAL SIGINT
ENTRYPOINT ["docker-entrypoint.sh"]

# docker-compose.yml says what runs.
FROM postgres AS services
RUN DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends etcd-client etcd-server haproxy prometheus wget && \
    rm -rf /var/cache/apt
STOPSIGNAL SIGTERM
ENTRYPOINT []
