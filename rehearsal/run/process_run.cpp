#include "rehearsal/run/process_run.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <thread>

#include "backend/gloo/collective_workspace.hpp"
#include "model/scenario/expressions_of.hpp"
#include "properties/finding.hpp"
#include "rehearsal/elastic/folder_checkpoints.hpp"
#include "rehearsal/launch/host_memory.hpp"
#include "rehearsal/launch/launcher.hpp"
#include "rehearsal/text/number_text.hpp"

namespace lockstep::cli {

namespace {

void add_unsupported(OneRun& run, const std::string& what, const std::string& remedy) {
  run.problems.push_back(
      {Problem::Kind::unsupported, {run.preparation.scenario->file, 0, 0}, what, remedy});
}

// Nothing is asked of GPUs where the CPU was asked for.
DeviceChoice device_of(const OneRun& run, const DeviceRequest& request) {
  DeviceFacts facts;
  facts.scenario_has_gpus =
      !run.machine.is_flat && run.machine.cluster.node.device.compute_capability > 0;
  facts.has_cuda_program = !rank_program(cuda_rank_program).empty();
  facts.ranks = run.preparation.options.world_size;
  facts.devices_per_rank = run.preparation.options.devices_per_rank;
  return choose_device(request, facts,
                       request.wish == DeviceWish::cpu ? GpuInventory{} : find_gpus());
}

// The peak memory of all ranks, if they carry values; nothing if unknown.
Lack lack_of_memory(const OneRun& run, const OneRun& counted) {
  const std::optional<Bytes> available = available_host_memory();
  if (!available || !run.preparation.options.numerics) {
    return {};
  }
  const int64_t ranks = run.preparation.options.world_size;
  Bytes needed = (rank_program_memory + backend::collective_workspace) * ranks;
  for (const auto& devices : counted.result.memory) {
    for (const auto& [device, memory] : devices) {
      needed += memory.peak;
    }
  }
  if (needed <= *available) {
    return {};
  }
  return {
      fmt::format("{} need {} of this host's memory, but only {} is free", plural(ranks, "rank"),
                  bytes_text(needed.count()), bytes_text(available->count())),
      "use fewer ranks, a smaller model or batch, verify.numerics: false, or several hosts "
      "(torchrun, then lockstep compare)"};
}

// Names statements that only have a cost and are not executed, so that times are not misread.
void tell_what_was_not_done(OneRun& run) {
  bool priced = false;
  bool sized = false;
  if (const auto& program = run.preparation.scenario->program) {
    for_each_statement(*program, [&](const Statement& statement) {
      priced = priced || statement.kind == StatementKind::host ||
               statement.kind == StatementKind::kernel;
      sized = sized || (statement.kind != StatementKind::recv &&
                        statement.communication.elements.has_value());
    });
  }
  if (priced) {
    run.basis.emplace_back("`host` and `kernel` took no time");
  }
  if (sized) {
    run.basis.emplace_back("tensors of `elements` carried no data");
  }
}

}  // namespace

Lack lack_of_rank_programs(const std::string& program, int32_t ranks,
                           const std::string& remedy_for_too_many) {
  if (program.empty()) {
    return {"the rank program lockstep-rank was not found: it is built with LibTorch",
            "./dev libtorch fetches LibTorch and builds it; lockstep doctor lists what is missing"};
  }
  const auto cores = static_cast<int32_t>(std::max(1u, std::thread::hardware_concurrency()));
  if (const int32_t most = cores * process_ranks_per_core; ranks > most) {
    return {fmt::format("{} ranks are too many for this machine: {} at most", ranks, most),
            remedy_for_too_many};
  }
  return {};
}

Lack unknown_to_rank_programs(const OneRun& run) {
  if (run.preparation.placement.device == DeviceType::tpu) {
    return {
        "strategies of TPUs cannot be executed: they need torch_xla and a TPU, which the rank "
        "program does not have",
        "`lockstep run` and `verify` simulate them; `--world threads` runs their communication "
        "for real, one thread per rank"};
  }
  if (!run.preparation.registered_strategy.empty() &&
      standard_strategies().find(run.preparation.registered_strategy) == nullptr) {
    return {fmt::format("the rank program does not have the strategy {} of this program",
                        run.preparation.strategy),
            "`verify --world threads` runs it for real, one thread per rank"};
  }
  return {};
}

bool refuses_processes(OneRun& run) {
  Lack lack = unknown_to_rank_programs(run);
  if (lack.problem.empty()) {
    lack = lack_of_rank_programs(
        rank_program(), run.preparation.options.world_size,
        "start them on several hosts with torchrun, mpirun or srun, then use lockstep compare");
  }
  if (!lack.problem.empty()) {
    add_unsupported(run, lack.problem, lack.remedy);
  }
  return !lack.problem.empty();
}

void run_on_processes(OneRun& run, const RunRequest& request, const OneRun& counted,
                      const ProgramOfRank& program) {
  LaunchOptions options{.program = rank_program(),
                        .hang_after = request.hang_after,
                        .join_timeout = request.join_timeout,
                        .lists = request.lists,
                        .deadline = request.deadline};
  if (const auto* const store =
          dynamic_cast<const FolderCheckpoints*>(request.attempt.store.get())) {
    options.attempt = &request.attempt;
    options.attempt_folder = store->folder();
  }
  DeviceChoice device;
  if (request.real == nullptr) {
    device = device_of(run, request.device);
    if (!device.problem.empty()) {
      add_unsupported(run, device.problem, device.remedy);
      return;
    }
  }
  if (device.cuda) {
    options.program = rank_program(cuda_rank_program);
    options.on_gpus = true;
    options.oversubscribe = request.device.oversubscribe;
  }
  if (request.real == nullptr && !device.cuda) {
    const Lack lack = lack_of_memory(run, counted);
    if (!lack.problem.empty()) {
      add_unsupported(run, lack.problem, lack.remedy);
      return;
    }
  }
  try {
    RealRun real = request.real != nullptr ? (*request.real)(run.preparation, program)
                                           : launch(run.preparation, options);
    run.result = std::move(real.result);
    run.basis = std::move(real.basis);
    run.first_collective_clock_ns = real.first_collective_clock_ns;
    if (!device.told.empty()) {
      run.basis.push_back(device.told);
    }
    tell_what_was_not_done(run);
    run.ran = true;
  } catch (const CapabilityMissing& error) {
    add_unsupported(run, error.what(), "lockstep doctor lists what is missing");
  } catch (const RealRunFailed& error) {
    run.world_failure = error.what();
    run.world_is_damaged = dynamic_cast<const DamagedFile*>(&error) != nullptr;
  } catch (const TimeLimitReached& error) {
    run.undecided = error.what();
  }
}

}  // namespace lockstep::cli
