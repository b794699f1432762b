# What docker-compose.yml runs beside our own programs, from Debian's packages, as one image for all of their names.
ARG DEBIAN=localhost/hyperfleet-test-debian
FROM ${DEBIAN}
# No package starts its service.
RUN printf '#!/bin/sh\nexit 101\n' >/usr/sbin/policy-rc.d && chmod +x /usr/sbin/policy-rc.d && apt-get update -qq && \
    DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends \
        etcd-client etcd-server haproxy postgresql prometheus wget && \
    rm -rf /var/lib/apt/lists /var/cache/apt /var/lib/postgresql && mkdir -p /var/lib/postgresql/data && \
    ln -s /usr/lib/postgresql/*/bin/* /usr/local/bin/
COPY postgres-entrypoint /usr/local/bin/
# PostgreSQL's own image alone has no command in docker-compose.yml.
ENTRYPOINT ["postgres-entrypoint"]
