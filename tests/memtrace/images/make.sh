#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only make.sh: the images of test_mt_image and fuzz_mt_image out of
# scale.cu, by nvcc (13.0 made those that are here). Run in this folder.
set -eu
for mode in none speed balance; do
	nvcc -fatbin -arch=sm_90 --compress-mode=$mode -o $mode.fatbin scale.cu
done
nvcc -fatbin -gencode arch=compute_80,code=compute_80 -gencode arch=compute_90,code=[sm_90,compute_90] \
	-gencode arch=compute_90a,code=compute_90a -gencode arch=compute_100f,code=compute_100f \
	-gencode arch=compute_120,code=compute_120 --compress-mode=size -o many.fatbin scale.cu
nvcc -fatbin -gencode arch=compute_90,code=sm_90 -lineinfo --compress-mode=size -o lineinfo.fatbin scale.cu
nvcc -fatbin -gencode arch=compute_90,code=sm_90 --compress-mode=size -o cubin.fatbin scale.cu
nvcc -cubin -arch=sm_90 -lineinfo -o lineinfo.cubin scale.cu
