// Arguments of the Trainer that some versions have under another name, or not at all.
#include <fmt/format.h>

#include "model/trainer/framework/lightning_versions.hpp"
#include "model/trainer/framework/trainer_arguments.hpp"
#include "model/trainer/prepare/prepare_parts.hpp"

namespace lockstep {

namespace {

class ArgumentVersions {
 public:
  explicit ArgumentVersions(Preparation& preparation) : preparation_(preparation) {}

  template <class Member>
  void argument(const Member& member, const char* name, const Version& since, const Version& until,
                const char* instead) {
    const Version& lightning = preparation_.placement.lightning;
    if (member && lightning >= until) {
      refuse(
          member->place,
          fmt::format("Lightning {}.{} removed the argument `{}`", until.major, until.minor, name),
          fmt::format("use {}", instead));
    } else if (member && lightning < since) {
      refuse(member->place,
             fmt::format("the argument `{}` came with Lightning {}.{}", name, since.major,
                         since.minor),
             *instead == '\0' ? "leave it out" : fmt::format("use {}", instead));
    }
  }

 private:
  void refuse(const SourcePlace& place, const std::string& message, const std::string& remedy) {
    add_problem(preparation_, Problem::Kind::refused, place, message, remedy, refused_code);
  }

  Preparation& preparation_;
};

}  // namespace

void check_argument_versions(Preparation& preparation, const TrainerSpec& trainer) {
  ArgumentVersions check(preparation);
  check.argument(trainer.gpus, "gpus", {}, v2_0, "accelerator: gpu and devices");
  check.argument(trainer.num_processes, "num_processes", {}, v2_0, "accelerator: cpu and devices");
  check.argument(trainer.auto_select_gpus, "auto_select_gpus", {}, v2_0,
                 "devices: {find_usable_cuda_devices: N}");
  check.argument(trainer.replace_sampler_ddp, "replace_sampler_ddp", {}, v2_0,
                 "use_distributed_sampler");
  check.argument(trainer.use_distributed_sampler, "use_distributed_sampler", v2_0, never,
                 "replace_sampler_ddp");
  check.argument(trainer.amp_backend, "amp_backend", {}, v2_0, "precision: 16-mixed");
  check.argument(trainer.amp_level, "amp_level", {}, v2_0, "precision: 16-mixed");
  check.argument(trainer.barebones, "barebones", v2_0, never, "");
  check.argument(trainer.inference_mode, "inference_mode", {1, 8, 0}, never, "");
}

}  // namespace lockstep
