
#include <climits>
#include <cstdio>
#include <cstring>
#include "cuda_occupancy.h"

int main()
{
    cudaOccDeviceProp device;
    int threads, registers, fixed, sized;
    unsigned long block_bytes, bytes, opted_in, reserved;
    while (scanf("%d %d %d %d %d %d %d %lu %lu %lu %lu %d %d %d %d",
                 &device.computeMajor, &device.computeMinor, &device.maxThreadsPerBlock,
                 &device.maxThreadsPerMultiprocessor, &device.regsPerBlock,
                 &device.regsPerMultiprocessor, &device.warpSize, &block_bytes, &bytes, &opted_in,
                 &reserved, &threads, &registers, &fixed, &sized) == 15) {
        device.numSms = 1;
        device.sharedMemPerBlock = block_bytes;
        device.sharedMemPerMultiprocessor = bytes;
        device.sharedMemPerBlockOptin = opted_in;
        device.reservedSharedMemPerBlock = reserved;
        cudaOccFuncAttributes kernel;
        kernel.maxThreadsPerBlock = INT_MAX;
        kernel.numRegs = registers;
        kernel.sharedSizeBytes = fixed;
        kernel.partitionedGCConfig = PARTITIONED_GC_OFF;
        kernel.shmemLimitConfig = FUNC_SHMEM_LIMIT_OPTIN;
        kernel.maxDynamicSharedSizeBytes = sized;
        kernel.numBlockBarriers = 1;
        kernel.virtualResourceCount = 0;
        cudaOccDeviceState state;
        cudaOccResult result;
        cudaOccError status = cudaOccMaxActiveBlocksPerMultiprocessor(
            &result, &device, &kernel, &state, threads, sized);
        printf("%d\n", status == CUDA_OCC_SUCCESS ? result.activeBlocksPerMultiprocessor : -1);
    }
    return 0;
}
