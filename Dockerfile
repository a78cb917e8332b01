# The tab, in TensorBoard:   docker build -t stepscope .
#                            docker run --rm -p 127.0.0.1:6006:6006 -v "$PWD/log:/log:ro" stepscope
# Another command instead:   docker run --rm -v "$PWD/log:/log:ro" stepscope stepscope advise /log
FROM python:3.13-slim AS build
# hadolint ignore=DL3008
RUN apt-get update \
    && apt-get install --yes --no-install-recommends gcc libc6-dev \
    && rm -rf /var/lib/apt/lists/*
COPY . /source
ENV STEPSCOPE_SCANNER=1
RUN python -m pip wheel --no-cache-dir --no-deps --wheel-dir /wheels /source

FROM python:3.13-slim
RUN --mount=type=bind,from=build,source=/wheels,target=/wheels \
    python -m pip install --no-cache-dir "$(echo /wheels/stepscope-*.whl)[tensorboard]" \
    && useradd --create-home --uid 1000 stepscope
USER 1000
VOLUME /log
EXPOSE 6006
CMD ["tensorboard", "--logdir", "/log", "--bind_all"]
