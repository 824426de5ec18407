// The table of commands: a new one is a file pair and a line here.
#include "coordinator/client/cards_command.h"
#include "coordinator/client/command.h"
#include "coordinator/client/config_command.h"
#include "coordinator/client/data_command.h"
#include "coordinator/client/delete_command.h"
#include "coordinator/client/doctor_command.h"
#include "coordinator/client/estimate_command.h"
#include "coordinator/client/events_command.h"
#include "coordinator/client/export_command.h"
#include "coordinator/client/files_command.h"
#include "coordinator/client/help_command.h"
#include "coordinator/client/list_command.h"
#include "coordinator/client/logs_command.h"
#include "coordinator/client/metrics_command.h"
#include "coordinator/client/node_command.h"
#include "coordinator/client/nodes_command.h"
#include "coordinator/client/open_command.h"
#include "coordinator/client/plan_command.h"
#include "coordinator/client/presets_command.h"
#include "coordinator/client/report_command.h"
#include "coordinator/client/resume_command.h"
#include "coordinator/client/simulate_command.h"
#include "coordinator/client/status_command.h"
#include "coordinator/client/stop_command.h"
#include "coordinator/client/submit_command.h"
#include "coordinator/client/trace_command.h"
#include "coordinator/client/wait_command.h"

namespace motley::client {

const std::vector<Command>& Commands() {
  static const std::vector<Command> commands = {
      {"nodes", "nodes and devices: memory, measured speed, state; drain and undrain", AddNodes},
      {"node", "who may be a node: tokens to join by, members to forget", AddNode},
      {"doctor", "look at the running cluster: what is well, what is not, and what to do", AddDoctor},
      {"submit", "submit a job file", AddSubmit},
      {"list", "all jobs", AddList},
      {"status", "one job: state, reason, newest step", AddStatus},
      {"open", "the page of the cluster, or of a job, in a browser", AddOpen},
      {"report", "the page of a job as one file, which shows the same without a coordinator", AddReport},
      {"logs", "a job's training lines and the output of its ranks", AddLogs},
      {"metrics", "step records of a job", AddMetrics},
      {"events", "what happened to the cluster or to one job", AddEvents},
      {"stop", "save a checkpoint and stop a job", AddStop},
      {"resume", "let an ended job go on from its newest checkpoint, also with other settings", AddResume},
      {"wait", "wait until a job has ended; exit 1 if it did not succeed", AddWait},
      {"delete", "forget an ended job; its checkpoints stay, without --files", AddDelete},
      {"files", "what lies on the nodes' own disks: checkpoints, copies and data, also of deleted jobs", AddFiles},
      {"export", "write a job's or a folder's newest checkpoint in HuggingFace's layout", AddExport},
      {"plan", "the plan of a job and why it was chosen; or, without a cluster, the best plan for one described in a file",
       AddPlan},
      {"trace", "a running job's step as its ranks measured it, beside the simulated one", AddTrace},
      {"estimate", "without a cluster: does a model fit, what takes the memory, the largest batch and sequence", AddEstimate},
      {"simulate", "without a cluster: what a given plan costs, and which rule it breaks", AddSimulate},
      {"clusters", "the clusters that are known by name", AddClusters},
      {"models", "the models that are known by name", AddModels},
      {"cards", "the cards that are known by name: their rates, their memory, and who says so", AddCards},
      {"data", "tokens to train on, made from text and chats with a model's tokenizer", AddData},
      {"config", "check a job file, or show every value and where it came from", AddConfig},
      {"help", "what a command does and takes", AddHelp},
      {"man", "the man page", AddMan},
      {"completion", "completion for a shell", AddCompletion},
  };
  return commands;
}

}  // namespace motley::client
