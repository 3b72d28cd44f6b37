// Claims of public guides to multi-GPU training (those of Lightning 1.4 to 2.6, tutorials,
// articles), in our own words. Each claim is a scenario that `lockstep test` judges.
#include <algorithm>

#include "explain/explain_guides.hpp"

namespace lockstep::cli {

namespace {

using enum ClaimVerdict;

constexpr GuideClaim claims[] = {
    // Processes, nodes and data.
    {"environment-of-three-gpus",
     "Three GPUs of one machine are started with NODE_RANK 0, 1, 2 and LOCAL_RANK 0.", wrong, "",
     "all",
     "That is three nodes of one process. On one machine NODE_RANK is 0 and LOCAL_RANK is 0, 1, 2.",
     "scenarios/guide-environment.yaml:as_in_the_guide"},
    {"each-gpu-is-a-node", "Each GPU is a separate node.", wrong, "", "all",
     "A node is a machine. Each GPU has a process, so a node has one process per GPU.",
     "scenarios/guides/data-of-each-rank.yaml:own_parts"},
    {"subsets-are-shared", "The GPUs share the subsets of the data among them.", wrong, "", "all",
     "The parts are disjoint: under ddp each rank loads its own and never sees another.",
     "scenarios/guides/data-of-each-rank.yaml:own_parts"},
    {"effective-batch-of-ddp", "The effective batch of ddp is batch size x devices x nodes.", right,
     "", "all",
     "Multiply by accumulate_grad_batches. The loader's batch size is that of one process.",
     "scenarios/effective-batch-size.yaml:ddp_ten_nodes"},
    {"batch-size-does-not-change", "The batch size does not change with the number of GPUs.",
     right_only_if, "it is that of the loader of one process", "all",
     "A step of ddp trains on it times the devices: batches of 7 on 8 GPUs are 56. Under dp it is "
     "the step's.",
     "scenarios/effective-batch-size.yaml:ddp"},
    {"dp-on-ten-nodes", "The effective batch of dp on ten nodes is the batch size times ten.",
     wrong, "", "up to Lightning 1.9",
     "dp is one process of one node; several nodes are refused, whatever a row of the table is "
     "labelled.",
     "scenarios/effective-batch-size.yaml:dp_ten_nodes"},
    {"trainer-takes-all-gpus", "Trainer() trains on all GPUs that it finds.", right_only_if,
     "it is Lightning 2.x", "all", "Before 2.0 it trains on one CPU.",
     "scenarios/guides/what-a-bare-trainer-takes.yaml:lightning_1_6"},
    {"minus-one-is-auto", "devices: -1 and devices: auto are the same.", right_only_if,
     "the code is no notebook of Lightning 2.x", "all",
     "In such a notebook auto takes one GPU, and -1 takes all.",
     "scenarios/guides/minus-one-and-auto.yaml:notebook_auto"},
    {"notebooks-need-dp", "In a notebook dp is the way to several GPUs.", wrong, "",
     "from Lightning 1.7 on",
     "ddp_fork came with 1.7 and is the default of notebooks in 2.x, which has no dp.",
     "scenarios/guides/what-a-bare-trainer-takes.yaml:notebook"},
    {"strategies-to-choose-from", "dp, ddp2, horovod and bagua are strategies to choose from.",
     right_only_if, "Lightning is older than 2.0, for ddp2 than 1.7", "all",
     "They were removed and are errors since.", "scenarios/guides/removed-strategies.yaml"},
    {"ddp2-is-broken", "ddp2 is broken from PyTorch 1.9 on.", right, "", "up to Lightning 1.6",
     "PyTorch dropped replicas within a process: of each node only the first device computes, and "
     "1.7 has no ddp2.",
     "scenarios/guides/removed-strategies.yaml:ddp2_in_1_7"},
    // dp and ddp.
    {"sixty-four-over-four", "64 samples over 4 GPUs are 12 for each.", wrong, "", "all",
     "DataParallel cuts with chunk: ceil(64 / 4) = 16.",
     "scenarios/guides/dp-splits-the-batch.yaml:batch_of_64"},
    {"slices-of-the-batch", "dp is as if each GPU took a slice: batch[:8], batch[8:16] and so on.",
     right_only_if, "the number of GPUs divides the batch", "all",
     "chunk makes parts of ceil(n / K): 10 over 4 is 3, 3, 3, 1.",
     "scenarios/guides/dp-splits-the-batch.yaml:batch_of_10"},
    {"dp-divides-equally", "dp divides the batch equally over the GPUs.", wrong, "", "all",
     "The last part may be shorter, and parts may be missing: 5 over 4 is 2, 2, 1, and one GPU "
     "idles.",
     "scenarios/guides/dp-splits-the-batch.yaml:batch_of_5"},
    {"three-transfers-and-two", "A step takes three transfers under dp and two under ddp.",
     right_only_if, "it refers to the guide's labels", "all",
     "dp also sends output gradients out and gets gradients back, every step.",
     "scenarios/dp-versus-ddp-transfers.yaml"},
    {"dp-aggregates-weights", "dp aggregates the weights of all GPUs on the first one.", wrong, "",
     "all", "Gradients are summed on device 0, which alone steps; weights only travel from it.",
     "scenarios/dp-versus-ddp-transfers.yaml:dp"},
    {"ddp-aggregates-on-a-root",
     "After backward the root node of ddp aggregates the weights and sends them back.", wrong, "",
     "all", "There is no root. Gradients are all-reduced; weights travel once, at construction.",
     "scenarios/guides/ddp-has-no-root.yaml:steady_step"},
    {"three-times-as-fast", "ddp is at least three times as fast as dp.", wrong, "", "all",
     "Published pairs show 1.09 and 1.33 times. It depends on the ratio of compute to bytes.",
     "scenarios/guides/ddp-beside-dp.yaml:ddp"},
    {"outputs-in-step-end",
     "training_step_end gets a list of outputs; torch.cat(outputs, dim=1) joins them.", wrong, "",
     "up to Lightning 1.9", "The hook gets the outputs already gathered, concatenated on dim 0.",
     "scenarios/batch-softmax-dp.yaml:of_the_batch"},
    {"dp-in-16-bit", "dp cannot train in 16 bits.", wrong, "", "Lightning 1.6",
     "The documentation says so, but the code does not check it, and trains.",
     "scenarios/guides/dp-in-16-bit.yaml:taken"},
    {"spawn-leaves-the-model", "After ddp_spawn the model of the main process is not updated.",
     wrong, "", "from Lightning 1.6 on", "The weights are loaded back when the children end.",
     "scenarios/guides/spawn-trains-alike.yaml:spawned_validates"},
    {"spawn-loses-attributes", "After ddp_spawn attributes that training has set are lost.", right,
     "", "all",
     "Weights, logged values and the path of the best checkpoint come back, nothing else.",
     "scenarios/spawn-lost-attribute.yaml:spawned"},
    {"spawn-updates-differently", "ddp_spawn updates the model differently from ddp.", wrong, "",
     "all",
     "Only the start of the processes differs; communication and computation are those of ddp.",
     "scenarios/guides/spawn-trains-alike.yaml:spawned"},
    {"ddp-is-faster-than-spawn", "ddp is much faster than ddp_spawn.", right_only_if,
     "this refers to the start", "all",
     "Starting processes and their data workers may take longer; a step does not.",
     "scenarios/guides/spawn-trains-alike.yaml:spawned"},
    {"few-workers-under-spawn", "Under ddp_spawn num_workers must be small, which makes it slow.",
     right_only_if, "this refers to the start of the workers", "all",
     "Each start of them pickles the data set. Once they run, they load as fast as under ddp.",
     "scenarios/guides/workers-under-spawn.yaml:spawned"},
    // Logging and metrics.
    {"sync-dist-of-averages", "sync_dist=True is right for a value that may be averaged.",
     right_only_if, "the ranks divide the number of samples", "from Lightning 2.0 on",
     "The mean number of samples per rank is an integer there, and loses its fraction. It was "
     "exact before.",
     "scenarios/integer-floor-16-ranks.yaml:lightning_2"},
    {"sync-dist-on-step", "sync_dist=True weights a value of a step by the samples of each rank.",
     wrong, "", "all",
     "A value of a step is the plain mean of the ranks; only that of the epoch is weighted.",
     "scenarios/guides/logged-step-is-unweighted.yaml"},
    {"reduced-before-stored", "sync_dist=True reduces each value before it is stored.",
     right_only_if, "it is logged on_step", "all",
     "A value of the epoch is added up on each rank and reduced once, at the end.",
     "scenarios/guides/reduced-at-epoch-end.yaml:of_the_epoch"},
    {"accuracy-with-sync-dist", "Accuracy may be logged with sync_dist=True.", right_only_if,
     "it is micro accuracy, weighted by samples", "all",
     "A macro average is over classes; the mean of the ranks' averages is not the overall one.",
     "scenarios/guides/accuracy-with-sync-dist.yaml:macro"},
    {"torchmetrics-when-logged", "TorchMetrics synchronise when they are logged.", wrong, "", "all",
     "When they are computed, at the end of the epoch; on a step the batch of this rank is "
     "shown.",
     "scenarios/guides/metric-object-on-step.yaml"},
    {"callbacks-see-rank-0", "Callbacks that monitor a metric decide by rank 0's value.", wrong, "",
     "all",
     "Each rank's callback reads what its own rank logged. Log with sync_dist, so that all read "
     "the "
     "same.",
     "scenarios/ranks-stop-apart.yaml:any_rank_stops_all"},
    {"test-with-one-device", "Test with a separate Trainer of one device.", right, "", "all",
     "On several, samplers repeat samples until all ranks have as many, and metrics count them "
     "twice.",
     "scenarios/guides/test-with-one-device.yaml:four_devices"},
    {"as-on-one-device", "A synchronised metric is identical to that of one device.", right_only_if,
     "no sample is repeated", "all",
     "The sampler repeats samples until all ranks have the same number; these count twice.",
     "scenarios/guides/metric-with-padding.yaml:padded"},
    {"mean-of-all-gather", "torch.mean(self.all_gather(outputs)) is the mean over all ranks.",
     wrong, "", "all", "outputs is a list, so a list comes back, and torch.mean raises.",
     "scenarios/guides/mean-of-a-list.yaml:list_in_list_out"},
    {"gathering-any-list", "self.all_gather(outputs) takes lists of any length.", wrong, "", "all",
     "Each entry is a call: a rank with a shorter list leaves the others waiting.",
     "scenarios/mean-of-gathered-list.yaml:uneven_lists"},
    {"gather-everywhere", "Gather on all ranks, and guard only the logging with is_global_zero.",
     right, "", "all", "A gather under the guard waits for ranks that never call it.",
     "scenarios/guarded-all-gather.yaml:fixed"},
    // Optimizers, precision and memory.
    {"set-to-none-by-hand",
     "Gradients become None only where zero_grad(set_to_none=True) asks for it.", right_only_if,
     "PyTorch is older than 2.0", "all", "It is the default since.",
     "scenarios/guides/untouched-parameters.yaml:before_torch_2"},
    {"set-to-none-changes-nothing",
     "Gradients of None instead of zeros save memory and change nothing else.", wrong, "", "all",
     "A parameter without gradient is then unchanged; with zeros, momentum and decay still change "
     "it.",
     "scenarios/guides/untouched-parameters.yaml"},
    {"empty-cache-stalls-all", "torch.cuda.empty_cache() makes all GPUs wait.", wrong, "", "all",
     "The caller waits for its own device; other ranks wait at their next collective with it.",
     "scenarios/guides/empty-cache.yaml:waits_for_no_other_device"},
    {"sixteen-bit-needs-pascal", "16-bit precision needs a Pascal GPU or newer.", right_only_if,
     "this means running, not speed", "all",
     "Matrix products get faster with tensor cores, from Volta on; before, only memory traffic "
     "halves.",
     "scenarios/guides/tensor-cores.yaml:fp16_before_tensor_cores"},
    {"bf16-needs-ampere", "bf16 needs an Ampere GPU or newer.", right_only_if,
     "PyTorch is older than 2.4, or this means speed", "all",
     "Autocast refused bf16 on GPUs before; since 2.4 it is emulated there through fp32.",
     "scenarios/fp16-on-unsupported-strategy.yaml:bf16_on_volta"},
    {"sixteen-bit-and-memory", "16-bit precision gets rid of memory issues.", wrong, "", "all",
     "Mixed precision keeps parameters, gradients and optimizer state in 32 bits.",
     "scenarios/guides/half-precision.yaml:still_too_large"},
    // Horovod, Bagua and sharded training.
    {"horovod-shards-differently", "Horovod shards the data differently from ddp.", wrong, "",
     "up to Lightning 1.9", "Both use DistributedSampler with the global rank.",
     "scenarios/guides/sampler-by-hand.yaml:under_horovod"},
    {"horovod-scales-the-rate", "Horovod scales the learning rate by itself.", right_only_if,
     "Lightning integrates it", "up to Lightning 1.9",
     "Lightning's strategy multiplies by the world size, Horovod does not; do not scale twice.",
     "scenarios/horovod/learning-rate.yaml:twice"},
    {"sharded-is-talkative", "ddp_sharded has a high communication overhead.", wrong, "",
     "up to Lightning 1.9",
     "It moves 2S like ddp; it is slow if reductions go by parameter and broadcasts are not "
     "overlapped.",
     "scenarios/guides/sharded-traffic.yaml:sharded"},
    {"sharded-may-be-slower", "ddp_sharded might get slower than ddp.", right_only_if,
     "the network is slow, or the model is small and on several nodes", "up to Lightning 1.9",
     "The step waits for broadcasts of updated parameters, and updates a part of them: over NVLink "
     "that gains 5 % with 124 M parameters and 11 % with 1.56 G, over 10 Gb/s it loses 16 % or "
     "more.",
     "scenarios/guides/sharded-sweep.yaml", "", true},
    {"sharded-from-500-million", "ddp_sharded is for models of 500 M parameters and more.",
     right_only_if, "memory is short or there are several nodes", "up to Lightning 1.9",
     "What it saves grows with the model and has no threshold: a third to a half of the memory "
     "with "
     "124 M parameters, over half from 355 M on. On two nodes with InfiniBand the step is longer "
     "with 124 M parameters, and shorter from 355 M on.",
     "scenarios/guides/sharded-sweep.yaml", "", true},
    {"horovod-on-several-machines", "Horovod is the strategy for several machines.", wrong, "",
     "up to Lightning 1.9",
     "ddp sends the same bytes there. Horovod agrees by name first, once a cycle, so that its step "
     "is as long or longer; what it has is one launcher for all machines, and ranks in any order.",
     "scenarios/guides/horovod-on-nodes.yaml:horovod_on_two_nodes"},
    {"bagua-has-more-throughput", "Bagua usually has a higher throughput than ddp.", right_only_if,
     "the network decides, and the algorithm compresses without the leaders of nodes",
     "up to Lightning 1.9",
     "gradient_allreduce is ddp with other buckets. bytegrad sends a quarter of the bytes, by "
     "default through one network card of each node.",
     "scenarios/guides/bagua-on-a-slow-network.yaml:bytegrad_on_ethernet"},
    {"bagua-and-rust", "Bagua is faster because it is written in Rust.", wrong, "",
     "up to Lightning 1.9",
     "Unproven: its own figures for one algorithm differ by 1.4 times; the effect of the language "
     "is not shown.",
     "scenarios/guides/same-algorithm.yaml:buckets_of_bagua"},
    {"bagua-net-by-its-launcher", "Bagua-Net and autotuning work only under Bagua's own launcher.",
     right, "", "up to Lightning 1.9",
     "They are its options. Without them Bagua issues the same calls, whoever starts the "
     "processes.",
     "scenarios/guides/launcher-of-bagua.yaml:by_baguarun"},
    // Parameter servers.
    {"servers-need-fewer-transfers", "A parameter server needs fewer transfers than all_reduce.",
     wrong, "", "all",
     "A worker pulls and pushes the model, 2S against 2(W-1)/W S; the one link of the server "
     "carries "
     "W S each way.",
     "scenarios/guides/parameter-servers.yaml:sync"},
    {"servers-suit-unstable-networks",
     "Parameter servers suit unstable networks and workers of unequal speed.", right_only_if,
     "they are asynchronous, and Lightning is older than 2.5.3", "all",
     "A synchronous server waits for the slowest worker as all_reduce does, and for a lost one "
     "forever. From 2.5.3 on Lightning broadcasts a flag before every batch, which keeps workers "
     "together.",
     "scenarios/guides/parameter-servers.yaml:slow_worker_under_async"},
    {"servers-are-inconsistent", "With a parameter server workers compute by inconsistent weights.",
     right_only_if, "it is asynchronous", "all",
     "Equal workers then push gradients that are W - 1 updates old. A synchronous one trains as "
     "ddp.",
     "scenarios/parameter-server/asynchronous.yaml:equal_workers"},
};

}  // namespace

std::span<const GuideClaim> guide_claims() { return claims; }

const GuideClaim* find_guide_claim(std::string_view name) {
  const auto found = std::find_if(std::begin(claims), std::end(claims),
                                  [name](const GuideClaim& claim) { return claim.name == name; });
  return found == std::end(claims) ? nullptr : found;
}

}  // namespace lockstep::cli
