// Faults as processes: a rank that is killed before each of its operations in turn, one that is
// killed from outside, one that stops, one that raises. The others end within their deadline, the
// finding names the rank and its last operation, and nothing is left behind.
#include <fmt/format.h>
#include <unistd.h>

#include <atomic>
#include <catch2/catch.hpp>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <thread>

#include "properties/diagnosis/last_operation.hpp"
#include "rehearsal/findings/invariants.hpp"
#include "rehearsal/measure/compare.hpp"
#include "tests/fleet/three_worlds.hpp"

using namespace lockstep;
using namespace lockstep::test;

namespace process_faults_test {

namespace {

using Clock = std::chrono::steady_clock;
constexpr std::chrono::milliseconds deadline{300};
constexpr std::chrono::seconds ended_by{20};  // a busy machine; each wait has a deadline

std::string scenario_file(const std::string& name) {
  return std::string(LOCKSTEP_SOURCE_DIR) + "/scenarios/" + name;
}

// A training by ddp.
Asked small_training() {
  Asked asked;
  asked.text =
      "version: 1\ncluster: {preset: dgx-a100, nodes: 1}\n"
      "model: {layers: [{Linear: [4, 2]}], input: [4]}\n"
      "trainer: {devices: 2, strategy: ddp, max_epochs: 1, num_sanity_val_steps: 0, "
      "limit_val_batches: 0}\ndata: {batch_size: 2, train: {samples: 4}}\n";
  return asked;
}

// Rank 1 serves; the others push what they computed and pull what comes of it.
Asked parameter_server() {
  Asked asked;
  asked.text =
      "version: 1\ncluster: {ranks: 3, network: {bandwidth: 10 GB/s, latency: 5 us}}\n"
      "process_group: {backend: gloo}\nprogram:\n  main:\n"
      "    - let: {weights: \"full(8, 0.0)\"}\n"
      "    - repeat: 2\n      do:\n"
      "        - if: rank == 1\n          then:\n"
      "            - let: {total: \"full(8, 0.0)\", part: \"full(8, 0.0)\"}\n"
      "            - recv: {tensor: part, src: 0, as: part}\n"
      "            - let: {total: total + part}\n"
      "            - recv: {tensor: part, src: 2, as: part}\n"
      "            - let: {weights: weights - (total + part) / 4}\n"
      "            - send: {tensor: weights, dst: 0}\n"
      "            - send: {tensor: weights, dst: 2}\n"
      "          else:\n"
      "            - let: {gradient: \"full(8, 1.0) * (rank + 1)\"}\n"
      "            - kernel: 1 ms\n"
      "            - send: {tensor: gradient, dst: 1}\n"
      "            - recv: {tensor: weights, src: 1, as: weights}\n"
      "    - assert: mean(weights) == -2\n";
  return asked;
}

// Uneven batches under join, and a metric that is logged over all ranks.
Asked uneven_training() {
  Asked asked;
  asked.text =
      "version: 1\ncluster: {preset: dgx-a100, nodes: 1}\n"
      "model: {layers: [{Linear: [4, 2]}], input: [4]}\n"
      "trainer: {devices: 2, strategy: {DDPStrategy: {join: true}}, max_epochs: 1, "
      "num_sanity_val_steps: 0, limit_val_batches: 0}\n"
      "data: {train: {batches: 1 + (rank == 1), batch_size: 2}}\n"
      "program:\n  training_step:\n    - forward\n"
      "    - log: {name: train_loss, value: loss, on_step: true}\n";
  return asked;
}

Asked with_lost_rank(Asked asked, int32_t rank, int64_t call) {
  asked.set.push_back(fmt::format("faults=[{{lost_rank: {{rank: {}, call: {}}}}}]", rank, call));
  return asked;
}

int64_t operations_of(const Asked& asked, int32_t rank) {
  const cli::OneRun run = cli::run_once(load_scenario(asked), {});
  REQUIRE(run.ran);
  return last_operation(*run.result.journal, rank).count;
}

bool names(const Finding& finding, int32_t rank, const std::string& last) {
  const std::string lost = fmt::format("rank {} {}", rank, last);
  return finding.title.find(lost) != std::string::npos || finding.why.text.starts_with(lost);
}

/// What is left behind: files in the fleet's folder but the meeting places of living connections.
int64_t journals_in(const std::string& folder) {
  int64_t found = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    found += entry.path().extension() == ".journal" ? 1 : 0;
  }
  return found;
}

void check_lost(ThreeWorlds& worlds, const Asked& asked, int32_t rank, int64_t call) {
  INFO("rank " << rank << " is lost before its operation " << call << "\n" << asked.text);
  const Asked with = with_lost_rank(asked, rank, call);
  const Scenario scenario = load_scenario(with);
  const auto begin = Clock::now();
  const cli::OneRun real = worlds.run_processes(scenario, with, deadline);
  CHECK(Clock::now() - begin < ended_by);
  REQUIRE(real.ran);
  const RankEnd& end = real.result.ends[static_cast<size_t>(rank)];
  CHECK(end.kind == RankEnd::Kind::lost);
  CHECK(end.message == "ended by signal 9 (Killed)");
  CHECK(last_operation(*real.result.journal, rank).count == call - 1);
  // The simulation of the same fault agrees: endings, findings, calls, memory.
  CHECK(differences_from_simulation(scenario, real, false) == std::vector<std::string>{});
  CHECK(real.unstruck.empty());
  const std::string last = lost_text(real.result, rank);
  bool named = !real.result.hung;  // nobody waited for it
  for (const Finding& finding : cli::findings_of(real, cli::World::processes)) {
    named = named || names(finding, rank, last);
  }
  CHECK(named);
  CHECK(journals_in(worlds.fleet().folder()) == 0);
}

int64_t check_every_operation(ThreeWorlds& worlds, const Asked& asked, int32_t rank) {
  const int64_t operations = operations_of(asked, rank);
  for (int64_t call = 1; call <= operations; ++call) {
    check_lost(worlds, asked, rank, call);
  }
  return operations;
}

bool is_alive(pid_t process) {
  std::ifstream file(fmt::format("/proc/{}/stat", process));
  std::string text;
  std::getline(file, text);
  const size_t name_end = text.rfind(')');
  return name_end != std::string::npos && text.substr(name_end + 2, 1) != "Z";
}

}  // namespace

TEST_CASE("a rank that is killed before any of its operations is named with the last one") {
  std::vector<pid_t> last_processes;
  std::string folder;
  {
    ThreeWorlds worlds(deadline);
    int64_t kills = 0;
    kills += check_every_operation(worlds, small_training(), 1);
    kills += check_every_operation(worlds, parameter_server(), 1);
    kills += check_every_operation(worlds, uneven_training(), 0);
    fmt::print("killed a rank {} times; ranks were started {} times\n", kills,
               worlds.fleet().starts());
    CHECK(worlds.fleet().starts() == kills + 3);  // each scenario has at most three ranks
    last_processes = worlds.fleet().processes();
    folder = worlds.fleet().folder();
  }
  for (const pid_t process : last_processes) {
    CHECK_FALSE(is_alive(process));
  }
  CHECK_FALSE(std::filesystem::exists(folder));
}

TEST_CASE("a signal from outside, to a rank that waits, is reported with the operation it was at") {
  // Rank 1 waits in a message that nobody sends, rank 0 for rank 1.
  Asked asked;
  asked.text =
      "version: 1\ncluster: {ranks: 2, network: {bandwidth: 1 GB/s}}\n"
      "process_group: {backend: gloo}\nprogram:\n  main:\n    - barrier\n"
      "    - if: rank == 0\n      then: [{recv: {elements: 4, src: 1}}]\n"
      "      else: [{recv: {elements: 4, src: 0, tag: 7}}]\n";
  const auto healthy = [] {
    Asked other;
    other.text =
        "version: 1\ncluster: {ranks: 2, network: {bandwidth: 1 GB/s}}\n"
        "process_group: {backend: gloo}\nprogram:\n  main: [barrier]\n";
    return other;
  }();
  for (const int signal : {SIGKILL, SIGSTOP}) {
    INFO("signal " << signal);
    ThreeWorlds worlds(deadline);
    CHECK(worlds.judge(healthy).failures.empty());  // both are up
    const pid_t victim = worlds.fleet().processes().at(1);
    std::thread killer([victim, signal] {
      std::this_thread::sleep_for(std::chrono::milliseconds(700));
      kill(victim, signal);
    });
    const Scenario scenario = load_scenario(asked);
    const auto begin = Clock::now();
    const cli::OneRun real = worlds.run_processes(scenario, asked, std::chrono::milliseconds(2000));
    killer.join();
    CHECK(Clock::now() - begin < ended_by);
    REQUIRE(real.ran);
    CHECK(real.result.ends[1].kind == RankEnd::Kind::lost);
    CHECK(real.result.ends[1].message == "ended by signal 9 (Killed)");
    CHECK_FALSE(is_alive(victim));
    const std::vector<Finding> findings = cli::findings_of(real, cli::World::processes);
    REQUIRE(findings.size() == 1);
    CHECK(findings[0].code == "LS101");
    CHECK(findings[0].title ==
          "rank 0 waits forever in recv from rank 1: rank 1 was lost after its operation 2, recv");
    // A rank that the simulator loses while it waits there gives the same finding.
    Asked lost = asked;
    lost.set.push_back("faults=[{lost_rank: {rank: 1, at: 1 s}}]");
    const cli::OneRun simulated = cli::run_once(load_scenario(lost), {cli::World::simulated, true});
    const std::vector<Finding> expected = cli::findings_of(simulated, cli::World::simulated);
    REQUIRE(expected.size() == 1);
    CHECK(expected[0].title == findings[0].title);
    CHECK(expected[0].site() == findings[0].site());
    // The fleet goes on.
    CHECK(worlds.judge(healthy).failures.empty());
  }
}

TEST_CASE("two runs that differ are distinguished") {
  ThreeWorlds worlds(deadline);
  const Asked asked = small_training();
  Asked other = asked;
  other.set = {"seed_everything=2"};
  const cli::OneRun real = worlds.run_processes(load_scenario(asked), asked, deadline);
  REQUIRE(real.ran);
  CHECK(differences_from_simulation(load_scenario(asked), real, false).empty());
  CHECK_FALSE(differences_from_simulation(load_scenario(other), real, false).empty());
}

TEST_CASE("a rank that raises ends alone, in every world alike") {
  ThreeWorlds worlds(deadline);
  Asked asked;
  asked.path = scenario_file("exception-on-one-rank.yaml");
  asked.scenario_case = "raised";
  const Agreement agreement = worlds.judge(asked);
  CHECK(agreement.failures == std::vector<std::string>{});
  CHECK(agreement.findings == std::vector<std::string>{"LS101"});
}

TEST_CASE("connections are kept as long as runs end well") {
  ThreeWorlds worlds(deadline);
  Asked asked;
  asked.path = scenario_file("unusual-but-correct.yaml");
  for (const char* one : {"mesh_of_groups", "relay", "server_of_any", "uneven_exchange"}) {
    asked.scenario_case = one;
    CHECK(worlds.judge(asked).failures == std::vector<std::string>{});
  }
  CHECK(worlds.fleet().connections() == 1);
  asked.path = scenario_file("exception-on-one-rank.yaml");
  asked.scenario_case = "raised";
  CHECK(worlds.judge(asked).failures.empty());
  asked.scenario_case = "healthy";
  CHECK(worlds.judge(asked).failures.empty());
  CHECK(worlds.fleet().connections() == 2);
  CHECK(worlds.fleet().starts() == 4);
}

// Started by the next test, and killed.
TEST_CASE("holds a fleet", "[.]") {
  ThreeWorlds worlds(deadline);
  CHECK(worlds.judge(small_training()).failures.empty());
  fmt::print("held: {} {}\n", getpid(), fmt::join(worlds.fleet().processes(), " "));
  std::fflush(stdout);
  std::this_thread::sleep_for(std::chrono::seconds(60));
}

TEST_CASE("ranks end with the process that started them") {
  const std::string self = std::filesystem::read_symlink("/proc/self/exe").string();
  std::FILE* output = popen((self + " \"holds a fleet\"").c_str(), "r");
  REQUIRE(output != nullptr);
  std::vector<pid_t> processes;
  char line[512];
  while (processes.empty() && std::fgets(line, sizeof line, output) != nullptr) {
    std::istringstream words(line);
    std::string word;
    words >> word;
    for (pid_t process = 0; word == "held:" && words >> process;) {
      processes.push_back(process);
    }
  }
  REQUIRE(processes.size() == 3);
  kill(processes.front(), SIGKILL);
  pclose(output);
  const auto limit = Clock::now() + ended_by;
  for (const pid_t process : processes) {
    while (is_alive(process) && Clock::now() < limit) {
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
    }
    CHECK_FALSE(is_alive(process));
  }
}

TEST_CASE("a case that no rank can run is refused with the reason, and the fleet goes on") {
  ThreeWorlds worlds(deadline);
  Asked asked;
  asked.text =
      "version: 1\ncluster: {ranks: 2, network: {bandwidth: 1 GB/s}}\n"
      "program:\n  main: [barrier]\n";
  const Scenario scenario = load_scenario(asked);
  Asked other = asked;
  other.set = {"cluster.ranks=3"};  // the ranks read another world size than they are
  const cli::OneRun refused = worlds.run_processes(scenario, other, deadline);
  CHECK_FALSE(refused.ran);
  CHECK(refused.world_failure.find("requested number of ranks") != std::string::npos);
  CHECK(worlds.judge(asked).failures.empty());
}

}  // namespace process_faults_test
