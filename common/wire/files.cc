#include "common/wire/files.h"

#include "common/wire/both_ways.h"

namespace motley::wire {

WIRE_MESSAGE(v1::FilesTicket, FilesTicket) {
  WIRE_FIELD(job_uid, plain.job_uid);
  WIRE_FIELD(expires_unix_ms, plain.expires_unix_ms);
  WIRE_FIELD(proof, plain.proof);
}

namespace {

// Beside the lists below.
using wire::FromProto;
using wire::ToProto;

WIRE_MESSAGE(v1::UnwantedFiles, UnwantedFiles) {
  WIRE_FIELD(job_id, plain.job);
  WIRE_FIELD(job_uid, plain.uid);
  WIRE_FIELD(kept_uid, plain.kept);
}

WIRE_MESSAGE(v1::SampledBlock, SampledBlock) {
  WIRE_FIELD(file, plain.file);
  WIRE_COUNT(file_bytes, plain.file_bytes);
  WIRE_COUNT(block, plain.block);
  WIRE_FIELD(sha256, plain.sha256);
}

}  // namespace

WIRE_MESSAGE(v1::PathSample, PathSample) {
  WIRE_COUNT(files, plain.files);
  WIRE_COUNT(bytes, plain.bytes);
  WIRE_PARTS(blocks, plain.blocks);
}

WIRE_MESSAGE(v1::ListedFiles, ListedFiles) {
  WIRE_FIELD(job_id, plain.job);
  WIRE_FIELD(job_uid, plain.uid);
  WIRE_FIELD(name, plain.name);
  WIRE_FIELD(input, plain.input);
  WIRE_COUNT(bytes, plain.bytes);
  WIRE_FIELD(coming, plain.coming);
}

WIRE_MESSAGE(v1::HoldingsRequest, HoldingsCommand) {
  WIRE_STAMP();
  WIRE_FIELD(job_uid, plain.job_uid);
  WIRE_FIELD(check_id, plain.check_id);
  WIRE_FIELD(files_secret, plain.files_secret);
  WIRE_LIST(inputs, plain.inputs);
  WIRE_FIELD(list, plain.list);
  WIRE_PARTS(unwanted, plain.unwanted);
  WIRE_FIELD(only_look, plain.only_look);
}

namespace {

WIRE_MESSAGE(v1::CheckpointHolder, CheckpointHolder) {
  WIRE_FIELD(node, plain.node);
  WIRE_FIELD(address, plain.address);
  WIRE_FIELD(certificate, plain.certificate);
  WIRE_PART(ticket, plain.ticket);
  WIRE_FIELD(manifest, plain.manifest);
  WIRE_LIST(files, plain.files);
}

WIRE_MESSAGE(v1::HeldFile, HeldFile) {
  WIRE_FIELD(name, plain.name);
  WIRE_COUNT(bytes, plain.bytes);
  WIRE_FIELD(here, plain.here);
  WIRE_FIELD(node, plain.node);
}

WIRE_MESSAGE(v1::HeldCheckpoint, HeldCheckpoint) {
  WIRE_FIELD(name, plain.name);
  WIRE_FIELD(manifest_sha256, plain.manifest_digest);
  WIRE_FIELD(mark, plain.mark);
  WIRE_FIELD(epoch, plain.epoch);
  WIRE_FIELD(step, plain.step);
  WIRE_FIELD(model, plain.model);
  WIRE_FIELD(dtype, plain.dtype);
  WIRE_FIELD(data_digest, plain.data_digest);
  WIRE_FIELD(seed, plain.seed);
  WIRE_PARTS(files, plain.files);
}

WIRE_MESSAGE(v1::UnpublishedFiles, UnpublishedFiles) {
  WIRE_FIELD(epoch, plain.epoch);
  WIRE_FIELD(step, plain.step);
  WIRE_PARTS(files, plain.files);
}

WIRE_MESSAGE(v1::DamagedFile, DamagedFile) {
  WIRE_FIELD(node, plain.node);
  WIRE_FIELD(file, plain.file);
}

WIRE_MESSAGE(v1::DroppedCheckpoint, DroppedCheckpoint) {
  WIRE_FIELD(epoch, plain.epoch);
  WIRE_FIELD(step, plain.step);
  WIRE_FIELD(manifest_sha256, plain.manifest_digest);
}

}  // namespace

WIRE_MESSAGE(v1::CheckpointSource, CheckpointSource) {
  WIRE_FIELD(name, plain.name);
  WIRE_FIELD(manifest_sha256, plain.manifest_digest);
  WIRE_FIELD(mark, plain.mark);
  WIRE_PARTS(holders, plain.holders);
  WIRE_FIELD(verify, plain.verify);
  WIRE_FIELD(job_id, plain.job);
  WIRE_FIELD(job_uid, plain.job_uid);
}

WIRE_MESSAGE(v1::CopyRequest, CopyCommand) {
  WIRE_STAMP();
  WIRE_FIELD(job_uid, plain.job_uid);
  WIRE_FIELD(copy_id, plain.copy_id);
  WIRE_PART(source, plain.source);
  WIRE_LIST(files, plain.files);
  WIRE_COUNT(bytes_per_second, plain.bytes_per_second);
  WIRE_FIELD(input, plain.input);
}

WIRE_MESSAGE(v1::DropRequest, DropCommand) {
  WIRE_STAMP();
  WIRE_FIELD(job_uid, plain.job_uid);
  WIRE_PARTS(checkpoints, plain.checkpoints);
}

WIRE_MESSAGE(v1::CarryRequest, CarryCommand) {
  WIRE_STAMP();
  WIRE_FIELD(job_uid, plain.job_uid);
  WIRE_FIELD(carry_id, plain.carry_id);
  WIRE_FIELD(checkpoint, plain.checkpoint);
  WIRE_FIELD(file, plain.file);
  WIRE_FIELD(input, plain.input);
  WIRE_LIST(kept_inputs, plain.kept_inputs);
  WIRE_FIELD(path, plain.path);
}

WIRE_MESSAGE(v1::Holdings, HoldingsReport) {
  WIRE_STAMP();
  WIRE_FIELD(check_id, plain.check_id);
  WIRE_FIELD(error, plain.error);
  WIRE_FIELD(error_code, plain.error_code);
  WIRE_PARTS(checkpoints, plain.held.checkpoints);
  WIRE_PARTS(unpublished, plain.held.unpublished);
  WIRE_FIELD(port, plain.port);
  WIRE_FIELD(certificate, plain.certificate);
  WIRE_COUNT(free_bytes, plain.free_bytes);
  WIRE_LIST(inputs, plain.inputs);
  WIRE_PARTS(listed, plain.listed);
  WIRE_COUNT(unlisted, plain.unlisted);
  WIRE_PARTS(gone, plain.gone);
  WIRE_COUNT(part_bytes, plain.part_bytes);
}

WIRE_MESSAGE(v1::FetchProgress, FetchReport) {
  WIRE_STAMP();
  WIRE_COUNT(bytes, plain.bytes);
  WIRE_COUNT(bytes_here, plain.bytes_here);
  WIRE_FIELD(done, plain.done);
  WIRE_FIELD(error, plain.error);
  WIRE_FIELD(error_code, plain.error_code);
  WIRE_FIELD(copy_id, plain.copy_id);
  WIRE_PARTS(damaged_files, plain.damaged_files);
  WIRE_FIELD(input, plain.input);
}

}  // namespace motley::wire
