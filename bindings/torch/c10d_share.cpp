/*
 * c10d_share.cpp - moves a tensor to memory that the other ranks of the host read, and store sums into, where it lies.
 *
 * As torch does in Tensor.share_memory_(): the storage gets other memory, and all tensors that are views of it follow. Only for tensors
 * whose memory nobody knows by its address, as DDP's buckets are.
 */
#include "c10d_backend.h"

#include <cstring>

namespace espalier {

namespace {

/* Less goes through a board, where it is copied anyhow. */
constexpr size_t kLeast = 128 << 10;

struct Piece {
	void *memory;
	esp_context *of; /* compared only: it may be gone */
};

void let_go(void *piece)
{
	esp_free(nullptr, static_cast<Piece *>(piece)->memory);
	delete static_cast<Piece *>(piece);
}

bool is_movable(const at::Tensor &tensor)
{
	return tensor.device().is_cpu() && tensor.layout() == at::kStrided && tensor.has_storage() && tensor.storage_offset() == 0 &&
	       tensor.is_contiguous() && tensor.storage().nbytes() == tensor.nbytes() && tensor.nbytes() >= kLeast;
}

} // namespace

bool share(const at::Tensor &tensor, esp_context *context)
{
	void *memory;

	if (!is_movable(tensor))
		return false;
	c10::StorageImpl *storage = tensor.storage().unsafeGetStorageImpl();
	const c10::DataPtr &old = storage->data_ptr();
	if (old.get_deleter() == &let_go && static_cast<Piece *>(old.get_context())->of == context)
		return true;
	if (esp_alloc(context, tensor.nbytes(), &memory) != ESP_OK)
		return false; /* then it is copied, as before */
	esp_keep(context, memory);
	std::memcpy(memory, old.get(), tensor.nbytes());
	storage->set_data_ptr(c10::DataPtr(memory, new Piece{memory, context}, &let_go, tensor.device()));
	return true;
}

bool Backend::share(const at::Tensor &tensor)
{
	Inside inside(door_->lock);

	return door_->open && espalier::share(tensor, context_);
}

} // namespace espalier
