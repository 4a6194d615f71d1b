package result

// Environment is the machine, as far as it could be seen, with host name and paths left out. What is null or empty is named
// in NotVisible, "field: reason"; a limit that is not set is null as well, and its reason says so.
type Environment struct {
	MachineKey string       `json:"machine_key"` // rounded facts only: the same machine type gives the same key
	CPU        CPU          `json:"cpu"`
	MemoryMB   *int64       `json:"memory_mb"`
	OS         OS           `json:"os"`
	Cgroup     Cgroup       `json:"cgroup"`
	Client     ClientLimits `json:"client"`
	Lab        LabCost      `json:"lab"`
	Noise      Noise        `json:"noise"`
	NotVisible []string     `json:"not_visible"`
}

// CPU is the processor. The two brands are kept apart because a hypervisor may set them differently.
type CPU struct {
	BrandCPUID string   `json:"brand_cpuid"`
	BrandOS    string   `json:"brand_os"`
	Logical    int      `json:"logical"`
	Physical   *int     `json:"physical"`
	Affinity   *int     `json:"affinity"` // processors this process may use
	NUMANodes  *int     `json:"numa_nodes"`
	SMT        *bool    `json:"smt"`
	MHz        *float64 `json:"mhz"`      // the most that the driver allows, else the speed seen, else CPUID's word
	Governor   string   `json:"governor"` // all that are in force, with commas
	Turbo      *bool    `json:"turbo"`
}

// OS is the system below us.
type OS struct {
	Name        string            `json:"name"`
	Arch        string            `json:"arch"`
	Kernel      string            `json:"kernel"`
	Clocksource string            `json:"clocksource"`
	Hypervisor  string            `json:"hypervisor"`
	Container   string            `json:"container"`
	Mitigations map[string]string `json:"mitigations"`
	Conntrack   *bool             `json:"conntrack"` // connections over loopback are tracked: every packet is looked up, which shows in every round trip
}

// Cgroup is what limits this process: the smallest limit of its group and all groups above it that can be seen.
type Cgroup struct {
	Version  string   `json:"version"` // v1 | v2 | hybrid | none
	CPUs     *float64 `json:"cpus"`
	MemoryMB *float64 `json:"memory_mb"`
}

// ClientLimits is how the lab's own process runs.
type ClientLimits struct {
	GOMAXPROCS int     `json:"gomaxprocs"`
	GOGC       string  `json:"gogc"`
	GOMEMLIMIT string  `json:"gomemlimit"`
	NoFile     *uint64 `json:"nofile"`
	Somaxconn  *int    `json:"somaxconn"`
	PortRange  string  `json:"port_range"`
}

// LabCost is what the lab itself costs on this machine, measured before the run: the cheapest of several batches, and how
// late about 60 short sleeps ended, whose p99 is therefore the largest.
type LabCost struct {
	ClockNS      float64 `json:"clock_ns"`      // one pair of clock readings: what every window holds beside the call
	ClockStepNS  float64 `json:"clock_step_ns"` // the smallest step the clock was seen to make
	RecordNS     float64 `json:"record_ns"`     // recording one success
	RecordAllocs float64 `json:"record_allocs"` // heap objects per success recorded
	SleepLateP50 float64 `json:"sleep_late_p50_us"`
	SleepLateP99 float64 `json:"sleep_late_p99_us"`
	MeterReadNS  float64 `json:"meter_read_ns"` // reading allocation counters, outside the window
}

// Noise is what else the machine did between the start and the end of the run.
type Noise struct {
	Load1Start      *float64 `json:"load1_start"`
	Load1End        *float64 `json:"load1_end"`
	PSICPUSome      *float64 `json:"psi_cpu_some_percent"`
	PSIMemSome      *float64 `json:"psi_memory_some_percent"`
	PSIIOSome       *float64 `json:"psi_io_some_percent"`
	Steal           *float64 `json:"steal_percent"`
	OthersCPU       *float64 `json:"others_cpu_percent"` // CPU time of all cores that neither we nor our contenders used
	ContextSwitches *int64   `json:"context_switches_per_s"`
}
