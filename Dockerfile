# Weighbridge where nothing but an engine is: make dist && docker build --tag weighbridge .
#   docker run --rm -it --privileged --pid host --network host --cgroupns host \
#       -v /var/run/docker.sock:/var/run/docker.sock -v /run/weighbridge:/run/weighbridge -v "$PWD":/root -w /root \
#       weighbridge weigh --image shop:1.5 -- --self-test
# docs/start/install.md says what cannot be measured from there.
ARG BASE=python:3.13-slim
FROM ${BASE}
RUN command -v ip || { apt-get update && apt-get install -y --no-install-recommends ethtool iproute2 iptables nftables; }
COPY dist/*.whl /tmp/wheels/
ARG PIP_NO_INDEX
RUN pip install --no-cache-dir --find-links /tmp/wheels /tmp/wheels/weighbridge-*_"$(uname -m)".whl
ENTRYPOINT ["weighbridge"]
