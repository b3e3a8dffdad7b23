"""What machine code (SASS) shows about a kernel's speed: pure functions of nvdisasm's listing."""
