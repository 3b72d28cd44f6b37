// Which device a real run takes, what its ranks are reported, and how busy its streams were.
#include <catch2/catch.hpp>

#include <map>

#include "rehearsal/launch/device_choice.hpp"
#include "rehearsal/launch/occupancy.hpp"
#include "rehearsal/launch/shared_gpu.hpp"

namespace lockstep::cli::launch_device_test {

namespace {

GpuInventory machine_with(size_t gpus) {
  return {"580.65.06", 13000, std::vector<std::string>(gpus, "NVIDIA H200"), ""};
}

GpuInventory machine_without() { return {"", 0, {}, "libnvidia-ml.so.1 was not found"}; }

DeviceFacts two_ranks() { return {true, true, 2, 1}; }

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

void add_operation(Journal& journal, int32_t rank, OpKind kind, Time start, Time finish) {
  LaneJournal& lane = journal.lane(rank, LaneId{0});
  Row row;
  row.row = RowKind::op;
  row.kind = kind;
  row.sequence = static_cast<uint32_t>(lane.size() + 1);
  journal.append(rank, LaneId{0}, row);
  Completion completion;
  completion.start = start;
  completion.finish = finish;
  completion.outcome = Outcome::ok;
  lane.complete(row.sequence, completion);
}

}  // namespace

TEST_CASE("automatic takes GPUs where the scenario has some and the machine has enough") {
  CHECK(choose_device({}, two_ranks(), machine_with(2)).cuda);
  CHECK(choose_device({}, two_ranks(), machine_with(8)).told.empty());
}

TEST_CASE("automatic falls back to the CPU, and says why") {
  const auto told = [](const DeviceFacts& facts, const GpuInventory& inventory) {
    const DeviceChoice choice = choose_device({}, facts, inventory);
    CHECK_FALSE(choice.cuda);
    CHECK(choice.problem.empty());
    return choice.told;
  };
  CHECK(has(told(two_ranks(), machine_without()), "libnvidia-ml.so.1 was not found"));
  CHECK(has(told(two_ranks(), machine_with(1)), "2 GPUs are needed, but this machine has 1"));
  CHECK(has(told({false, true, 2, 1}, machine_with(2)), "the scenario names no GPU"));
  CHECK(has(told({true, false, 2, 1}, machine_with(2)), "lockstep-rank-cuda was not found"));
  GpuInventory old = machine_with(2);
  old.driver = "535.86";
  old.cuda_version = 12020;
  CHECK(has(told(two_ranks(), old), "535.86 is too old: it runs CUDA 12.2, and 13.0 is needed"));
}

TEST_CASE("a device that was asked for by name and is not there is a problem with a remedy") {
  const DeviceRequest cuda{DeviceWish::cuda, false};
  const DeviceChoice none = choose_device(cuda, two_ranks(), machine_without());
  CHECK_FALSE(none.cuda);
  CHECK(has(none.problem, "no GPU found"));
  CHECK(has(none.remedy, "--device cpu"));
  const DeviceChoice few = choose_device(cuda, two_ranks(), machine_with(1));
  CHECK(has(few.problem, "2 GPUs are needed"));
  CHECK(has(few.remedy, "--oversubscribe"));
  CHECK(choose_device(cuda, {false, true, 2, 1}, machine_with(2)).cuda);
}

TEST_CASE("ranks share a GPU only where that is allowed, and one rank's devices never") {
  const DeviceRequest shared{DeviceWish::automatic, true};
  CHECK(choose_device(shared, {true, true, 4, 1}, machine_with(1)).cuda);
  CHECK(has(choose_device(shared, {true, true, 1, 2}, machine_with(1)).told,
            "a rank drives 2 GPUs, but this machine has 1"));
}

TEST_CASE("the CPU that was asked for needs no word") {
  const DeviceChoice choice = choose_device({DeviceWish::cpu, false}, two_ranks(), machine_with(2));
  CHECK_FALSE(choice.cuda);
  CHECK((choice.told.empty() && choice.problem.empty()));
}

TEST_CASE("ranks that share a GPU look like hosts of their own to NCCL") {
  const auto first = variables_of_shared_gpu(0);
  const auto second = variables_of_shared_gpu(1);
  std::map<std::string, std::string> values(first.begin(), first.end());
  CHECK(values.at("NCCL_P2P_DISABLE") == "1");
  CHECK(values.at("NCCL_SHM_DISABLE") == "1");
  CHECK(values.at("NCCL_NET") == "Socket");
  CHECK(values.at("NCCL_SOCKET_IFNAME") == "lo");
  CHECK(values.at("NCCL_PROTO") == "Simple");
  CHECK(values.at("NCCL_HOSTID") !=
        std::map<std::string, std::string>(second.begin(), second.end()).at("NCCL_HOSTID"));
}

TEST_CASE("streams are busy while any operation runs, counted once") {
  Journal journal(2, {});
  add_operation(journal, 0, OpKind::compute, Time(0), Time(40));
  add_operation(journal, 0, OpKind::all_reduce, Time(20), Time(60));  // overlaps: 0 .. 60
  add_operation(journal, 0, OpKind::compute, Time(80), Time(100));
  add_operation(journal, 0, OpKind::host, Time(60), Time(80));  // the host is no device
  add_operation(journal, 1, OpKind::compute, Time(0), Time(40));
  CHECK(stream_occupancy(journal, Time(100)) == Approx((0.8 + 0.4) / 2));
  CHECK(stream_occupancy(journal, Time(0)) == 0);
}

}  // namespace lockstep::cli::launch_device_test
