#!/bin/sh
# prepare.sh DIRECTORY
# Create the lane, a service that submits and one that works, and write their tokens to DIRECTORY.
# Run it once, where the database is. The services themselves have no database login.
set -eu

laneway lanes create fleet --max-slots unbounded --poll-interval-ms 1000 --lease-seconds 10 \
    --job-types checksum,transcode

laneway principals create producer --kind service
laneway roles grant producer submitter --scope own --max-queued 2000000
laneway roles grant producer viewer --scope all --lanes fleet
laneway tokens create producer --name backlog --out "$1/producer.token"

laneway principals create fleet --kind service
laneway roles grant fleet remote_worker --scope all --lanes fleet
laneway tokens create fleet --name workers --out "$1/fleet.token"
