/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * cuda_abi.h: the byte offsets of the members of CUDA's parameter structs on 64-bit hosts. For the BPF
 * programs, which read these structs from the traced program's memory; usable from C too. Includes
 * nothing.
 *
 * X(NAME, type, member, offset) gives the constant TTMON_ABI_NAME; S(NAME, type, size) gives
 * TTMON_ABI_NAME_SIZE. The types are named so that tests/unit/include/test_layout.c can compare every
 * row with the headers of the CUDA that is installed. Numbers are those of CUDA 13.0; the structs are
 * public ABI and have only ever grown by reserved members. Members that older headers do not have are
 * in a table of their own. The _v1 driver structs (32-bit sizes, before CUDA 3.2) are different types
 * and not described here.
 */
#ifndef TTMON_CUDA_ABI_H
#define TTMON_CUDA_ABI_H

/* Values of CUmemorytype and of the type of a 3D batch operand. */
enum ttmon_abi_memtype {
	TTMON_ABI_MEM_HOST = 1,
	TTMON_ABI_MEM_DEVICE = 2,
	TTMON_ABI_MEM_ARRAY = 3,
	TTMON_ABI_MEM_UNIFIED = 4, /* the address is in the Device member */
};

enum ttmon_abi_optype { TTMON_ABI_OPTYPE_POINTER = 1, TTMON_ABI_OPTYPE_ARRAY = 2 };

/* cudaMemLocationType and CUmemLocationType. */
enum ttmon_abi_location {
	TTMON_ABI_LOC_DEVICE = 1,
	TTMON_ABI_LOC_HOST = 2,
	TTMON_ABI_LOC_HOST_NUMA = 3,
	TTMON_ABI_LOC_HOST_NUMA_CURRENT = 4,
};

#define TTMON_ABI_OFFSETS(X)                                                                          \
	X(PITCHED_PTR, struct cudaPitchedPtr, ptr, 0)                                                 \
	X(PITCHED_PITCH, struct cudaPitchedPtr, pitch, 8)                                             \
	X(PITCHED_XSIZE, struct cudaPitchedPtr, xsize, 16)                                            \
	X(PITCHED_YSIZE, struct cudaPitchedPtr, ysize, 24)                                            \
	X(EXTENT_WIDTH, struct cudaExtent, width, 0)                                                  \
	X(EXTENT_HEIGHT, struct cudaExtent, height, 8)                                                \
	X(EXTENT_DEPTH, struct cudaExtent, depth, 16)                                                 \
	X(LOC_TYPE, struct cudaMemLocation, type, 0)                                                  \
	X(LOC_ID, struct cudaMemLocation, id, 4)                                                      \
	/* cudaMemcpy3D; positions are in bytes for pitched pointers, elements for arrays */          \
	X(RT3D_SRC_ARRAY, struct cudaMemcpy3DParms, srcArray, 0)                                      \
	X(RT3D_SRC_X, struct cudaMemcpy3DParms, srcPos.x, 8)                                          \
	X(RT3D_SRC_Y, struct cudaMemcpy3DParms, srcPos.y, 16)                                         \
	X(RT3D_SRC_Z, struct cudaMemcpy3DParms, srcPos.z, 24)                                         \
	X(RT3D_SRC_PTR, struct cudaMemcpy3DParms, srcPtr.ptr, 32)                                     \
	X(RT3D_SRC_PITCH, struct cudaMemcpy3DParms, srcPtr.pitch, 40)                                 \
	X(RT3D_SRC_XSIZE, struct cudaMemcpy3DParms, srcPtr.xsize, 48)                                 \
	X(RT3D_SRC_YSIZE, struct cudaMemcpy3DParms, srcPtr.ysize, 56)                                 \
	X(RT3D_DST_ARRAY, struct cudaMemcpy3DParms, dstArray, 64)                                     \
	X(RT3D_DST_X, struct cudaMemcpy3DParms, dstPos.x, 72)                                         \
	X(RT3D_DST_Y, struct cudaMemcpy3DParms, dstPos.y, 80)                                         \
	X(RT3D_DST_Z, struct cudaMemcpy3DParms, dstPos.z, 88)                                         \
	X(RT3D_DST_PTR, struct cudaMemcpy3DParms, dstPtr.ptr, 96)                                     \
	X(RT3D_DST_PITCH, struct cudaMemcpy3DParms, dstPtr.pitch, 104)                                \
	X(RT3D_DST_XSIZE, struct cudaMemcpy3DParms, dstPtr.xsize, 112)                                \
	X(RT3D_DST_YSIZE, struct cudaMemcpy3DParms, dstPtr.ysize, 120)                                \
	X(RT3D_WIDTH, struct cudaMemcpy3DParms, extent.width, 128)                                    \
	X(RT3D_HEIGHT, struct cudaMemcpy3DParms, extent.height, 136)                                  \
	X(RT3D_DEPTH, struct cudaMemcpy3DParms, extent.depth, 144)                                    \
	X(RT3D_KIND, struct cudaMemcpy3DParms, kind, 152)                                             \
	/* cudaMemcpy3DPeer */                                                                        \
	X(RT3DP_SRC_ARRAY, struct cudaMemcpy3DPeerParms, srcArray, 0)                                 \
	X(RT3DP_SRC_X, struct cudaMemcpy3DPeerParms, srcPos.x, 8)                                     \
	X(RT3DP_SRC_Y, struct cudaMemcpy3DPeerParms, srcPos.y, 16)                                    \
	X(RT3DP_SRC_Z, struct cudaMemcpy3DPeerParms, srcPos.z, 24)                                    \
	X(RT3DP_SRC_PTR, struct cudaMemcpy3DPeerParms, srcPtr.ptr, 32)                                \
	X(RT3DP_SRC_PITCH, struct cudaMemcpy3DPeerParms, srcPtr.pitch, 40)                            \
	X(RT3DP_SRC_XSIZE, struct cudaMemcpy3DPeerParms, srcPtr.xsize, 48)                            \
	X(RT3DP_SRC_YSIZE, struct cudaMemcpy3DPeerParms, srcPtr.ysize, 56)                            \
	X(RT3DP_SRC_DEVICE, struct cudaMemcpy3DPeerParms, srcDevice, 64)                              \
	X(RT3DP_DST_ARRAY, struct cudaMemcpy3DPeerParms, dstArray, 72)                                \
	X(RT3DP_DST_X, struct cudaMemcpy3DPeerParms, dstPos.x, 80)                                    \
	X(RT3DP_DST_Y, struct cudaMemcpy3DPeerParms, dstPos.y, 88)                                    \
	X(RT3DP_DST_Z, struct cudaMemcpy3DPeerParms, dstPos.z, 96)                                    \
	X(RT3DP_DST_PTR, struct cudaMemcpy3DPeerParms, dstPtr.ptr, 104)                               \
	X(RT3DP_DST_PITCH, struct cudaMemcpy3DPeerParms, dstPtr.pitch, 112)                           \
	X(RT3DP_DST_XSIZE, struct cudaMemcpy3DPeerParms, dstPtr.xsize, 120)                           \
	X(RT3DP_DST_YSIZE, struct cudaMemcpy3DPeerParms, dstPtr.ysize, 128)                           \
	X(RT3DP_DST_DEVICE, struct cudaMemcpy3DPeerParms, dstDevice, 136)                             \
	X(RT3DP_WIDTH, struct cudaMemcpy3DPeerParms, extent.width, 144)                               \
	X(RT3DP_HEIGHT, struct cudaMemcpy3DPeerParms, extent.height, 152)                             \
	X(RT3DP_DEPTH, struct cudaMemcpy3DPeerParms, extent.depth, 160)                               \
	/* cuMemcpy2D_v2 and friends */                                                               \
	X(DRV2D_SRC_X, CUDA_MEMCPY2D, srcXInBytes, 0)                                                 \
	X(DRV2D_SRC_Y, CUDA_MEMCPY2D, srcY, 8)                                                        \
	X(DRV2D_SRC_TYPE, CUDA_MEMCPY2D, srcMemoryType, 16)                                           \
	X(DRV2D_SRC_HOST, CUDA_MEMCPY2D, srcHost, 24)                                                 \
	X(DRV2D_SRC_DEVICE, CUDA_MEMCPY2D, srcDevice, 32)                                             \
	X(DRV2D_SRC_ARRAY, CUDA_MEMCPY2D, srcArray, 40)                                               \
	X(DRV2D_SRC_PITCH, CUDA_MEMCPY2D, srcPitch, 48)                                               \
	X(DRV2D_DST_X, CUDA_MEMCPY2D, dstXInBytes, 56)                                                \
	X(DRV2D_DST_Y, CUDA_MEMCPY2D, dstY, 64)                                                       \
	X(DRV2D_DST_TYPE, CUDA_MEMCPY2D, dstMemoryType, 72)                                           \
	X(DRV2D_DST_HOST, CUDA_MEMCPY2D, dstHost, 80)                                                 \
	X(DRV2D_DST_DEVICE, CUDA_MEMCPY2D, dstDevice, 88)                                             \
	X(DRV2D_DST_ARRAY, CUDA_MEMCPY2D, dstArray, 96)                                               \
	X(DRV2D_DST_PITCH, CUDA_MEMCPY2D, dstPitch, 104)                                              \
	X(DRV2D_WIDTH, CUDA_MEMCPY2D, WidthInBytes, 112)                                              \
	X(DRV2D_HEIGHT, CUDA_MEMCPY2D, Height, 120)                                                   \
	/* cuMemcpy3D_v2; cuMemcpy3DPeer has the same layout with contexts in the reserved members */ \
	X(DRV3D_SRC_X, CUDA_MEMCPY3D, srcXInBytes, 0)                                                 \
	X(DRV3D_SRC_Y, CUDA_MEMCPY3D, srcY, 8)                                                        \
	X(DRV3D_SRC_Z, CUDA_MEMCPY3D, srcZ, 16)                                                       \
	X(DRV3D_SRC_LOD, CUDA_MEMCPY3D, srcLOD, 24)                                                   \
	X(DRV3D_SRC_TYPE, CUDA_MEMCPY3D, srcMemoryType, 32)                                           \
	X(DRV3D_SRC_HOST, CUDA_MEMCPY3D, srcHost, 40)                                                 \
	X(DRV3D_SRC_DEVICE, CUDA_MEMCPY3D, srcDevice, 48)                                             \
	X(DRV3D_SRC_ARRAY, CUDA_MEMCPY3D, srcArray, 56)                                               \
	X(DRV3D_SRC_PITCH, CUDA_MEMCPY3D, srcPitch, 72)                                               \
	X(DRV3D_SRC_HEIGHT, CUDA_MEMCPY3D, srcHeight, 80)                                             \
	X(DRV3D_DST_X, CUDA_MEMCPY3D, dstXInBytes, 88)                                                \
	X(DRV3D_DST_Y, CUDA_MEMCPY3D, dstY, 96)                                                       \
	X(DRV3D_DST_Z, CUDA_MEMCPY3D, dstZ, 104)                                                      \
	X(DRV3D_DST_LOD, CUDA_MEMCPY3D, dstLOD, 112)                                                  \
	X(DRV3D_DST_TYPE, CUDA_MEMCPY3D, dstMemoryType, 120)                                          \
	X(DRV3D_DST_HOST, CUDA_MEMCPY3D, dstHost, 128)                                                \
	X(DRV3D_DST_DEVICE, CUDA_MEMCPY3D, dstDevice, 136)                                            \
	X(DRV3D_DST_ARRAY, CUDA_MEMCPY3D, dstArray, 144)                                              \
	X(DRV3D_DST_PITCH, CUDA_MEMCPY3D, dstPitch, 160)                                              \
	X(DRV3D_DST_HEIGHT, CUDA_MEMCPY3D, dstHeight, 168)                                            \
	X(DRV3D_WIDTH, CUDA_MEMCPY3D, WidthInBytes, 176)                                              \
	X(DRV3D_HEIGHT, CUDA_MEMCPY3D, Height, 184)                                                   \
	X(DRV3D_DEPTH, CUDA_MEMCPY3D, Depth, 192)                                                     \
	X(DRV3DP_SRC_TYPE, CUDA_MEMCPY3D_PEER, srcMemoryType, 32)                                     \
	X(DRV3DP_SRC_CONTEXT, CUDA_MEMCPY3D_PEER, srcContext, 64)                                     \
	X(DRV3DP_SRC_PITCH, CUDA_MEMCPY3D_PEER, srcPitch, 72)                                         \
	X(DRV3DP_DST_TYPE, CUDA_MEMCPY3D_PEER, dstMemoryType, 120)                                    \
	X(DRV3DP_DST_CONTEXT, CUDA_MEMCPY3D_PEER, dstContext, 152)                                    \
	X(DRV3DP_DST_PITCH, CUDA_MEMCPY3D_PEER, dstPitch, 160)                                        \
	X(DRV3DP_DEPTH, CUDA_MEMCPY3D_PEER, Depth, 192)                                               \
	/* properties of pools and VMM allocations */                                                 \
	X(POOL_LOC_TYPE, struct cudaMemPoolProps, location.type, 8)                                   \
	X(POOL_LOC_ID, struct cudaMemPoolProps, location.id, 12)                                      \
	X(DRV_POOL_LOC_TYPE, CUmemPoolProps, location.type, 8)                                        \
	X(DRV_POOL_LOC_ID, CUmemPoolProps, location.id, 12)                                           \
	X(VMM_LOC_TYPE, CUmemAllocationProp, location.type, 8)                                        \
	X(VMM_LOC_ID, CUmemAllocationProp, location.id, 12)

/*
 * One operation of cudaMemcpy3DBatchAsync, since CUDA 12.8; the driver's has the same layout. Lengths
 * and heights count elements of one byte unless an array is involved; 0 means the width and height of
 * the extent.
 */
#define TTMON_ABI_BATCH_OFFSETS(X)                                                  \
	X(OPERAND_TYPE, struct cudaMemcpy3DOperand, type, 0)                        \
	X(OPERAND_PTR, struct cudaMemcpy3DOperand, op.ptr.ptr, 8)                   \
	X(OPERAND_ROW_LENGTH, struct cudaMemcpy3DOperand, op.ptr.rowLength, 16)     \
	X(OPERAND_LAYER_HEIGHT, struct cudaMemcpy3DOperand, op.ptr.layerHeight, 24) \
	X(OPERAND_LOC_TYPE, struct cudaMemcpy3DOperand, op.ptr.locHint.type, 32)    \
	X(OPERAND_ARRAY, struct cudaMemcpy3DOperand, op.array.array, 8)             \
	X(OPERAND_ARRAY_X, struct cudaMemcpy3DOperand, op.array.offset.x, 16)       \
	X(BATCH3D_SRC, struct cudaMemcpy3DBatchOp, src, 0)                          \
	X(BATCH3D_DST, struct cudaMemcpy3DBatchOp, dst, 40)                         \
	X(BATCH3D_WIDTH, struct cudaMemcpy3DBatchOp, extent.width, 80)              \
	X(BATCH3D_HEIGHT, struct cudaMemcpy3DBatchOp, extent.height, 88)            \
	X(BATCH3D_DEPTH, struct cudaMemcpy3DBatchOp, extent.depth, 96)              \
	X(BATCH3D_ORDER, struct cudaMemcpy3DBatchOp, srcAccessOrder, 104)           \
	X(BATCH3D_FLAGS, struct cudaMemcpy3DBatchOp, flags, 108)                    \
	X(DRV_OPERAND_TYPE, CUmemcpy3DOperand, type, 0)                             \
	X(DRV_OPERAND_PTR, CUmemcpy3DOperand, op.ptr.ptr, 8)                        \
	X(DRV_OPERAND_ROW_LENGTH, CUmemcpy3DOperand, op.ptr.rowLength, 16)          \
	X(DRV_OPERAND_LAYER_HEIGHT, CUmemcpy3DOperand, op.ptr.layerHeight, 24)      \
	X(DRV_BATCH3D_SRC, CUDA_MEMCPY3D_BATCH_OP, src, 0)                          \
	X(DRV_BATCH3D_DST, CUDA_MEMCPY3D_BATCH_OP, dst, 40)                         \
	X(DRV_BATCH3D_WIDTH, CUDA_MEMCPY3D_BATCH_OP, extent.width, 80)              \
	X(DRV_BATCH3D_HEIGHT, CUDA_MEMCPY3D_BATCH_OP, extent.height, 88)            \
	X(DRV_BATCH3D_DEPTH, CUDA_MEMCPY3D_BATCH_OP, extent.depth, 96)

#define TTMON_ABI_SIZES(S)                          \
	S(PITCHED, struct cudaPitchedPtr, 32)       \
	S(EXTENT, struct cudaExtent, 24)            \
	S(LOC, struct cudaMemLocation, 8)           \
	S(RT3D, struct cudaMemcpy3DParms, 160)      \
	S(RT3DP, struct cudaMemcpy3DPeerParms, 168) \
	S(DRV2D, CUDA_MEMCPY2D, 128)                \
	S(DRV3D, CUDA_MEMCPY3D, 200)                \
	S(DRV3DP, CUDA_MEMCPY3D_PEER, 200)          \
	S(POOL, struct cudaMemPoolProps, 88)        \
	S(DRV_POOL, CUmemPoolProps, 88)             \
	S(VMM, CUmemAllocationProp, 32)

#define TTMON_ABI_BATCH_SIZES(S)                    \
	S(OPERAND, struct cudaMemcpy3DOperand, 40)  \
	S(BATCH3D, struct cudaMemcpy3DBatchOp, 112) \
	S(DRV_OPERAND, CUmemcpy3DOperand, 40)       \
	S(DRV_BATCH3D, CUDA_MEMCPY3D_BATCH_OP, 112)

enum ttmon_abi {
#define X(NAME, type, member, offset) TTMON_ABI_##NAME = offset,
	TTMON_ABI_OFFSETS(X) TTMON_ABI_BATCH_OFFSETS(X)
#undef X
#define S(NAME, type, size) TTMON_ABI_##NAME##_SIZE = size,
		TTMON_ABI_SIZES(S) TTMON_ABI_BATCH_SIZES(S)
#undef S
};

#endif /* TTMON_CUDA_ABI_H */
