MemcpyHtoD,0x00007f6ed2000000,4096
kernel-1.traceg
kernel-2.traceg
MemcpyHtoD,0x00007f6ed2000000,4096
kernel-3.traceg
kernel-4.trace
