# onesided on the processor, without a graphics card: docker build -t onesided . && docker run onesided doctor
# `make container` runs these steps without docker. torch's default build for Linux brings gigabytes of CUDA
# libraries: give the address of its CPU builds, which its installation page names, by
# --build-arg TORCH_INDEX=ADDRESS. Extras are left out unless named: --build-arg EXTRAS=geo,review.
# docker run -v "$PWD:/home/analyst/data" onesided fit -p data/P -u data/U -o data/run
FROM python:3.12-slim AS build
WORKDIR /source
COPY pyproject.toml README.md LICENSE ./
COPY src ./src
RUN pip wheel --no-cache-dir --no-deps --wheel-dir /wheels .

FROM python:3.12-slim
ARG TORCH_INDEX=
ARG EXTRAS=
COPY --from=build /wheels /wheels
RUN pip install --no-cache-dir ${TORCH_INDEX:+--extra-index-url "$TORCH_INDEX"} "$(ls /wheels/*.whl)${EXTRAS:+[$EXTRAS]}" && rm -r /wheels
RUN useradd --create-home analyst
USER analyst
WORKDIR /home/analyst
RUN onesided doctor --quiet
ENTRYPOINT ["onesided"]
CMD ["--help"]
