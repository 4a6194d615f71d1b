package agent

// A Reason is why a spawn was refused. It is an error itself, so errors.Is(err, agent.DuplicateName) asks for it.
type Reason string

// The reasons, in the order in which a spawn is examined.
const (
	BadName             Reason = "bad_name"
	ShuttingDown        Reason = "shutting_down"
	DuplicateName       Reason = "duplicate_name"
	MaxAgents           Reason = "max_agents"
	MaxChildren         Reason = "max_children"
	MaxSpawns           Reason = "max_total_spawns"
	MaxPerSpawner       Reason = "max_children_per_spawner"
	MaxSpawnsPerSpawner Reason = "max_total_spawns_per_spawner"
	MaxSpawners         Reason = "max_spawners"
	UnknownClass        Reason = "unknown_class"
	NotAllowed          Reason = "not_allowed"
	Vetoed              Reason = "vetoed"
	BadConfig           Reason = "bad_config"
	StartFailed         Reason = "start_failed"
)

// Error returns the reason.
func (r Reason) Error() string { return string(r) }

// A Refusal is why an agent was not spawned.
type Refusal struct {
	Reason Reason
	Name   string // of the agent
	Detail string
	Cause  error // nil or what Detail tells
}

// Error returns name, reason and detail.
func (r *Refusal) Error() string {
	text := "spawn " + r.Name + ": " + string(r.Reason)
	if r.Detail != "" {
		text += ": " + r.Detail
	}
	return text
}

// Unwrap returns the reason and the cause.
func (r *Refusal) Unwrap() []error {
	if r.Cause == nil {
		return []error{r.Reason}
	}
	return []error{r.Reason, r.Cause}
}
