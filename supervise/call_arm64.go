package supervise

const sysAccess = -1 // not on this architecture
