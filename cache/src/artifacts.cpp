#include "model/digest.h"
#include "store_impl.h"

namespace tunerd::cache {
namespace {

constexpr const char* kSelect =
    "SELECT digest, cubin, entry, arch, nvrtc, variant, registers, spill_bytes, stack_bytes, static_smem_bytes, "
    "compile_ms, log FROM artifacts WHERE kernel_key = ?";

Result<std::optional<Artifact>> read(Database& database, const std::string& kernel_key) {
  TRY_ASSIGN(Statement select, database.prepare(kSelect));
  TRY_ASSIGN(const bool there, select.text(kernel_key).row());
  if (!there) return std::nullopt;
  Artifact artifact;
  artifact.kernel_key = kernel_key;
  artifact.digest = select.text_at(0);
  artifact.cubin = select.text_at(1);
  artifact.entry = select.text_at(2);
  artifact.arch = select.text_at(3);
  artifact.nvrtc = select.text_at(4);
  artifact.variant = select.text_at(5);
  artifact.registers = select.integer_at(6);
  artifact.spill_bytes = select.integer_at(7);
  artifact.stack_bytes = select.integer_at(8);
  artifact.static_smem_bytes = select.integer_at(9);
  artifact.compile_ms = select.real_at(10);
  artifact.log = select.text_at(11);
  return artifact;
}

Status move_to_bad(Database& database, const Artifact& artifact, const std::string& found) {
  const std::string at = utc_now();
  TRY_ASSIGN(Transaction transaction, Transaction::begin(database));
  TRY_ASSIGN(Statement insert,
             database.prepare("INSERT INTO artifacts_bad (kernel_key, digest, found_digest, cubin, at) "
                              "VALUES (?, ?, ?, ?, ?)"));
  TRY(insert.text(artifact.kernel_key).text(artifact.digest).text(found).blob(artifact.cubin).text(at).run());
  TRY_ASSIGN(Statement remove, database.prepare("DELETE FROM artifacts WHERE kernel_key = ?"));
  TRY(remove.text(artifact.kernel_key).run());
  return transaction.commit();
}

}  // namespace

Status insert_artifact(Database& database, const Artifact& artifact) {
  if (artifact.kernel_key.empty()) return bad_input("kernel_key", "", "a digest");
  if (artifact.cubin.empty()) return bad_input("cubin", "0 bytes", "the bytes of a kernel");
  const std::string digest = sha256_hex(artifact.cubin);
  if (!artifact.digest.empty() && artifact.digest != digest) {
    Error error{Code::corrupt, "The kernel " + artifact.kernel_key + " does not have the digest it says.",
                "digest",      artifact.digest,
                digest,        {}};
    return Unexpected(std::move(error));
  }
  const std::string at = utc_now();
  TRY_ASSIGN(
      Statement insert,
      database.prepare("INSERT OR REPLACE INTO artifacts (kernel_key, digest, cubin, entry, arch, nvrtc, variant, "
                       "registers, spill_bytes, stack_bytes, static_smem_bytes, compile_ms, log, at) "
                       "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"));
  insert.text(artifact.kernel_key).text(digest).blob(artifact.cubin).text(artifact.entry).text(artifact.arch);
  insert.text(artifact.nvrtc).text(artifact.variant).integer(artifact.registers).integer(artifact.spill_bytes);
  insert.integer(artifact.stack_bytes).integer(artifact.static_smem_bytes).real(artifact.compile_ms);
  return insert.text(artifact.log).text(at).run();
}

Status Store::put_artifact(const Artifact& artifact) {
  TRY(impl_->writable());
  TRY_ASSIGN(Transaction transaction, Transaction::begin(*impl_->main));
  TRY(insert_artifact(*impl_->main, artifact));
  return transaction.commit();
}

Result<std::optional<Artifact>> Store::get_artifact(const std::string& kernel_key) {
  for (Database* layer : impl_->layers()) {
    TRY_ASSIGN(std::optional<Artifact> artifact, read(*layer, kernel_key));
    if (!artifact) continue;
    const std::string found = sha256_hex(artifact->cubin);
    if (found == artifact->digest) return artifact;
    impl_->warn("The stored kernel " + kernel_key + " of " + artifact->variant + " in " + layer->file().string() +
                " fails its digest; it is not used.");
    if (impl_->options.read_only || layer == impl_->base.get()) continue;
    // A full disk must not turn a miss into a failure: the row stays, and is refused again next time.
    if (const Status moved = move_to_bad(*layer, *artifact, found); !moved) impl_->warn(moved.error().text());
  }
  return std::nullopt;
}

Result<bool> Store::has_artifact(const std::string& kernel_key) {
  for (Database* layer : impl_->layers()) {
    TRY_ASSIGN(Statement select, layer->prepare("SELECT 1 FROM artifacts WHERE kernel_key = ?"));
    TRY_ASSIGN(const bool there, select.text(kernel_key).row());
    if (there) return true;
  }
  return false;
}

}  // namespace tunerd::cache
